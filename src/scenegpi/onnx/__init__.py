"""Exports models and layers as ONNX files, and runs such files without torch (extra `[onnx]`).

export_model("vg150-layout", "model.onnx")
graph = Predictor("model.onnx")(boxes=xyxy, labels=names)      # onnxruntime only
"""

from typing import TYPE_CHECKING

from scenegpi.lazy import lazy

if TYPE_CHECKING:
    from scenegpi.onnx.export import export_layer, export_model
    from scenegpi.onnx.runtime import OnnxModel

__getattr__, __dir__, __all__ = lazy(__name__)
