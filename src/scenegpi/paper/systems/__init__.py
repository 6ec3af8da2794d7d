"""The systems that the paper compares itself with, one file each, on the inputs that the GPI models read.

What a row may read is in `reader`; what every row has to offer is in `system`. None of them is the original: boxes
and labels take the place of pixels, and widths are those that a laptop can train (docs/lab/systems.md says which).
"""
