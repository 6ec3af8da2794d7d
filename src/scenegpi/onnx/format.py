"""What names our ONNX files: changed whenever inputs, outputs or metadata change."""

from typing import Literal

Form = Literal["layout", "photo", "find", "vision", "finder"]
FORMS: dict[Form, str] = {
    "layout": "layout 1",
    "photo": "photo 1",
    "find": "find 1",
    "vision": "vision 1",
    "finder": "finder 1",
}
"""What a file reads: boxes and labels; a photo and boxes; a photo. The last two are the parts
of a photo model that a `Predictor` runs before the layout: a photo and boxes, or a photo -> label distributions."""
