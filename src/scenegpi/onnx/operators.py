"""Steps between pixels and tensors, each as one operator of torch that stands for operators of ONNX.

A tracer sees none of what is inside: sizes that depend on the photo, or on what is found in it, stay in there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from scenegpi import boxes as box_tools
from scenegpi.vision import crops


@torch.library.custom_op("scenegpi::stretch", mutates_args=())
def stretch(image: Tensor, low: Tensor, size: Tensor, side: int) -> Tensor:
    """A part of a photo as a square: image (H, W, 3) bytes -> (3, side, side) int32, from 0 to 255.

    low, size (2,): its left upper corner, and its width and height, in whole pixels.
    """
    (x, y), (width, height) = low.tolist(), size.tolist()
    part = np.ascontiguousarray(image.numpy()[y : y + height, x : x + width])
    return crops.stretch(Image.fromarray(part), side)[0].int().contiguous()


@stretch.register_fake
def _(image: Tensor, low: Tensor, size: Tensor, side: int) -> Tensor:
    return image.new_empty((3, side, side), dtype=torch.int32)


@torch.library.custom_op("scenegpi::cut_out", mutates_args=())
def cut_out(image: Tensor, boxes: Tensor, side: int) -> Tensor:
    """Boxes (N, 4) within a photo (H, W, 3) of bytes, as squares: (N, 3, side, side), whole numbers."""
    return crops.cut_crops(Image.fromarray(image.numpy()), boxes, side).float().contiguous()


@cut_out.register_fake
def _(image: Tensor, boxes: Tensor, side: int) -> Tensor:
    return image.new_empty((boxes.shape[0], 3, side, side), dtype=torch.float32)


@torch.library.custom_op("scenegpi::suppress", mutates_args=())
def suppress(boxes: Tensor, scores: Tensor, iou: float, most: int) -> Tensor:
    """Non-maximum suppression in each of L groups: boxes (N, 4), scores (L, N), those below 0 left out -> (M,)."""
    found = []
    for row in scores.numpy():
        kept = np.flatnonzero(row >= 0)
        best = box_tools.suppress(boxes.numpy()[kept], row[kept], np.zeros(len(kept), dtype=np.int64), iou)
        found.append(kept[best[:most]])
    return torch.from_numpy(np.concatenate(found))


@suppress.register_fake
def _(boxes: Tensor, scores: Tensor, iou: float, most: int) -> Tensor:
    return boxes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.long)


def translations() -> dict[Callable[..., Any], Callable[..., Any]]:
    """What each of them is in ONNX."""
    from scenegpi.onnx import resize

    own = torch.ops.scenegpi
    return {
        own.stretch.default: resize.stretch,
        own.cut_out.default: resize.cut_out,
        own.suppress.default: _suppress,
        torch.ops.aten.sort.stable: _sort,
        operator.le: _at_most,
    }


def _suppress(boxes: Any, scores: Any, iou: float, most: int) -> Any:
    """Its boxes have no pixel of their own at the right and lower end, ours do; and it keeps scores above 0 only."""
    from onnx import TensorProto
    from onnxscript import opset18

    op: Any = opset18
    whole = op.Cast(
        op.Add(boxes, op.CastLike(op.Constant(value_floats=[0.0, 0.0, 1.0, 1.0]), boxes)), to=TensorProto.FLOAT
    )
    zero = op.Constant(value_ints=[0])
    selected = op.NonMaxSuppression(
        op.Unsqueeze(whole, zero),
        op.Unsqueeze(op.Cast(scores, to=TensorProto.FLOAT), zero),
        op.Constant(value_ints=[most]),
        op.Constant(value_floats=[iou]),
        op.Constant(value_floats=[0.0]),
    )
    return op.Gather(selected, op.Constant(value_int=2), axis=1)


def _sort(self: Any, *, stable: bool = True, dim: int = -1, descending: bool = False) -> Any:
    """aten.sort of a vector: TopK lists equal values in their order, so it is stable."""
    from onnxscript import opset18

    op: Any = opset18
    size = op.Reshape(op.Size(self), op.Constant(value_ints=[1]))
    return op.TopK(self, size, axis=dim, largest=int(descending), sorted=1)


def _at_most(left: Any, right: Any) -> Any:
    """Bounds of sizes, which nothing reads: those beyond an int64 cannot even be written down."""
    from onnxscript import opset18

    op: Any = opset18
    least, most = -(1 << 63), (1 << 63) - 1
    left, right = (
        op.Constant(value_int=min(max(each, least), most)) if isinstance(each, int) else each for each in (left, right)
    )
    return op.LessOrEqual(left, right)
