"""Section 5.1 of the paper: count the neighbours in one's own set, and how many samples that takes to learn.

Modules import torch; this package itself does not, so that the command line starts quickly.
"""
