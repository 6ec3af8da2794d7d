"""The HTML report: one self-contained file with figures, curves, a gallery and attention; no network requests."""
