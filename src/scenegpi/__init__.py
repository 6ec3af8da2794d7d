"""Scene graphs from images, by permutation-invariant structured prediction."""

__version__ = "0.1.0"
