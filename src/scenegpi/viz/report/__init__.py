"""The HTML report: one file with figures, curves, a gallery and attention, that opens from disk and asks nobody."""
