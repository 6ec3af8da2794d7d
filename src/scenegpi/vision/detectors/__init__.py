"""Detectors whose weights come in a package; one file each, loaded by `scenegpi.vision.detect.load_detector`."""
