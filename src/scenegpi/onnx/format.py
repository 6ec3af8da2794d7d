"""What names our ONNX files: changed whenever inputs, outputs or metadata change."""

LAYOUT = "layout 1"
