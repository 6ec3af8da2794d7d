"""The systems that the paper compares itself with, one file each, on the inputs that the GPI models read.

The inputs of a row are in `reader`; the interface of every row is in `system`. None of them is the original: boxes and
labels replace pixels, and widths are small enough for a laptop (listed in docs/lab/systems.md).
"""
