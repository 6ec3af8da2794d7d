r"""Pillow's bilinear resizing of bytes as ONNX operators: the same bytes.

A stretch of n pixels from a becomes m; pixel k of the result is the mean of the pixels x of the source by

.. math:: w_k(x) \propto \max(0, 1 - |x + 0.5 - c_k| / s), \quad c_k = a + (k + 0.5) \, n / m, \quad s = \max(1, n / m),

in whole numbers of 2^-22. Columns are mixed, then rows (since Pillow 13 rows first where that is much less work), and
rounded to bytes each time. What shrinks by 6 or more is first divided by a whole number f (means of f x f pixels), as
by Pillow with `reducing_gap=3`: a photo, or the part of it that a crop needs. Here "a" is the axis that is mixed first,
"b" the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from onnx import TensorProto
from onnx.numpy_helper import from_array
from onnxscript import opset18

op: Any = opset18
BITS = 22
GAP = 3


class _Axis(NamedTuple):
    """One side of the part that is resized, as numbers () of int64: its pixels, the first of them, by what they are
    divided and how many that gives; pixels of the whole photo, and how far apart they are in it."""

    size: Any
    low: Any
    factor: Any
    reduced: Any
    whole: Any
    stride: Any


def stretch(image: Any, low: Any, size: Any, side: int) -> Any:
    """A part of a photo as a square: image (H, W, 3) bytes -> (3, side, side) int32, from 0 to 255.

    low, size (2,) int64: its left upper corner, and its width and height.
    """
    factor = op.Max(op.Div(size, _ints(GAP * side)), _ints(1))
    turned, a, b = _axes(image, low, size, factor, side)
    taps, weights = _taps(a, side)
    mixed = op.ReduceSum(op.Mul(op.Gather(_reduced(image, a, b), taps, axis=2), weights), _ints(3), keepdims=0)
    taps, weights = _taps(b, side)
    mixed = op.Mul(op.Gather(_int(_rounded(mixed)), taps, axis=1), op.Unsqueeze(weights, _ints(2)))
    mixed = _int(_rounded(op.ReduceSum(mixed, _ints(2), keepdims=0)))
    return op.Where(turned, op.Transpose(mixed, perm=[0, 2, 1]), mixed)


def cut_out(image: Any, boxes: Any, side: int) -> Any:
    """Boxes (N, 4) within a photo (H, W, 3) of bytes, as squares: (N, 3, side, side), whole numbers (float)."""
    size = op.Gather(op.Shape(image), _ints(1, 0))
    turned, a, b = _axes(image, _ints(0, 0), size, _ints(1, 1), side)
    pixels = _double(_reduced(image, a, b))  # (3, B, A)
    corners = op.Gather(boxes, op.Where(turned, _ints(1, 0, 3, 2), _ints(0, 1, 2, 3)), axis=1)
    count, rows, three, wide = op.Shape(boxes, start=0, end=1), _vector(b.size), _ints(3), _ints(side)
    across = _every(a, corners, 0, side)
    across = op.Reshape(across, op.Concat(op.Mul(count, wide), _vector(a.size), axis=0), allowzero=1)
    lines = op.Reshape(op.Transpose(pixels, perm=[2, 1, 0]), op.Concat(_vector(a.size), op.Mul(rows, three), axis=0))
    mixed = _rounded(op.MatMul(across, lines))
    mixed = op.Reshape(mixed, op.Concat(count, wide, rows, three, axis=0), allowzero=1)
    mixed = op.Transpose(mixed, perm=[0, 2, 1, 3])
    mixed = op.Reshape(mixed, op.Concat(count, rows, _ints(3 * side), axis=0), allowzero=1)
    mixed = _rounded(op.MatMul(_every(b, corners, 1, side), mixed))
    mixed = op.Reshape(mixed, op.Concat(count, wide, wide, three, axis=0), allowzero=1)
    mixed = op.Where(turned, op.Transpose(mixed, perm=[0, 3, 2, 1]), op.Transpose(mixed, perm=[0, 3, 1, 2]))
    extent = op.Sub(op.Gather(boxes, _ints(2, 3), axis=1), op.Gather(boxes, _ints(0, 1), axis=1))
    factor = op.Max(op.Floor(op.Div(op.Div(extent, _real(float(side))), _real(float(GAP)))), _real(1.0))
    large = op.Greater(op.ReduceMax(factor, _ints(1), keepdims=0), _real(1.0))
    rows = op.Transpose(op.NonZero(large), perm=[1, 0])
    # One more, the first pixel: no runtime multiplies no matrices at all.
    some = [(op.Compress(boxes, large, axis=0), [[0.0, 0, 1, 1]]), (op.Compress(factor, large, axis=0), [[1.0, 1]])]
    chosen, by = (op.Concat(each, _constant(np.array(one)), axis=0) for each, one in some)
    again = _large(image, chosen, by, side)
    again = op.Slice(again, _ints(0), _ints(-1), _ints(0))
    return op.Cast(op.ScatterND(mixed, rows, again), to=TensorProto.FLOAT)


def _large(image: Any, boxes: Any, factor: Any, side: int) -> Any:
    """Boxes (M, 4) of which a side is divided first, by factor (M, 2): (M, 3, side, side), whole numbers."""
    whole = _double(op.Gather(op.Shape(image), _ints(1, 0)))
    low, high = op.Gather(boxes, _ints(0, 1), axis=1), op.Gather(boxes, _ints(2, 3), axis=1)
    reach = op.Div(op.Sub(high, low), _real(2.0 * side))
    first = op.Max(op.Floor(op.Sub(low, reach)), _real(0.0))
    last = op.Min(op.Ceil(op.Add(high, reach)), whole)
    reduced = op.Ceil(op.Div(op.Sub(last, first), factor))  # (M, 2)
    blocks, counts, weights = [], [], []
    for axis in (0, 1):
        start, end, by, size, near, far = (
            op.Unsqueeze(op.Gather(each, _ints(axis), axis=1), _ints(2))
            for each in (first, last, factor, reduced, low, high)
        )  # (M, 1, 1) each
        most = op.ReduceMax(size, keepdims=0)
        block = op.Range(_real(0.0), most, _real(1.0))
        pixel = op.Range(_real(0.0), op.Gather(whole, _number(axis)), _real(1.0))
        inside = op.And(op.GreaterOrEqual(pixel, start), op.Less(pixel, end))
        mine = op.Equal(op.Floor(op.Div(op.Sub(pixel, start), by)), op.Unsqueeze(block, _ints(1)))
        blocks.append(_double(op.And(mine, inside)))  # (M, K, W)
        counts.append(op.ReduceSum(blocks[-1], _ints(2), keepdims=0))
        near, far = (  # single, as Pillow keeps them
            op.Cast(op.Div(op.Sub(each, start), by), to=TensorProto.FLOAT) for each in (near, far)
        )
        scale = op.Div(_double(op.Sub(far, near)), _real(float(side)))
        centre = op.Add(_double(near), op.Mul(_centres(side), scale))
        weights.append(op.Unsqueeze(_weights(block, centre, op.Max(scale, _real(1.0)), size), _ints(1)))
    across, down = (op.Unsqueeze(each, _ints(1)) for each in blocks)  # (M, 1, K, W), (M, 1, L, H)
    pixels = _double(op.Transpose(image, perm=[2, 0, 1]))
    total = op.MatMul(op.MatMul(down, pixels), op.Transpose(across, perm=[0, 1, 3, 2]))  # (M, 3, L, K)
    count = op.Mul(op.Unsqueeze(counts[1], _ints(2)), op.Unsqueeze(counts[0], _ints(1)))
    count = op.Unsqueeze(op.Max(count, _real(1.0)), _ints(1))
    share = op.Mul(op.Floor(op.Div(_real(2.0**24), count)), _real(2.0**-24))
    means = op.Floor(op.Mul(op.Add(total, op.Floor(op.Mul(count, _real(0.5)))), share))
    columns, lines = op.Transpose(weights[0], perm=[0, 1, 3, 2]), weights[1]
    columns_first = _rounded(op.MatMul(lines, _rounded(op.MatMul(means, columns))))
    lines_first = _rounded(op.MatMul(_rounded(op.MatMul(lines, means)), columns))
    wide, tall = (op.Sub(op.Gather(reduced, _ints(axis), axis=1), _real(float(side))) for axis in (0, 1))
    turned = op.And(op.Greater(tall, _real(0.0)), op.Less(op.Mul(wide, _real(2.0)), tall))
    return op.Where(op.Unsqueeze(turned, _ints(2, 3)), lines_first, columns_first)


def _axes(image: Any, low: Any, size: Any, factor: Any, side: int) -> tuple[Any, _Axis, _Axis]:
    """Whether rows are mixed first; and the axis that is, and the other."""
    reduced = op.Div(op.Sub(op.Add(size, factor), _ints(1)), factor)
    width, height = op.Gather(reduced, _number(0)), op.Gather(reduced, _number(1))
    extra = op.Sub(height, _number(side))
    less = op.Less(op.Mul(op.Sub(width, _number(side)), _number(2)), extra)
    turned = op.And(op.Greater(extra, _number(0)), less)
    whole = op.Gather(op.Shape(image), _ints(1, 0))
    stride = op.Concat(_ints(1), op.Add(op.Gather(whole, _ints(0)), _ints(1)), axis=0)
    order = op.Where(turned, _ints(1, 0), _ints(0, 1))
    sides = [op.Gather(each, order) for each in (size, low, factor, reduced, whole, stride)]
    a, b = (_Axis(*(op.Gather(each, _number(k)) for each in sides)) for k in range(2))
    return turned, a, b


def _reduced(image: Any, a: _Axis, b: _Axis) -> Any:
    """Means of blocks of the part, (3, B, A) int32; the last ones of a row or column may be smaller."""
    padded = op.Pad(op.Transpose(image, perm=[2, 0, 1]), _ints(0, 0, 0, 0, 1, 1))  # zeros: past the end
    flat = op.Reshape(padded, _ints(3, -1))
    at_a, count_a = _blocks(a)
    at_b, count_b = _blocks(b)
    place = op.Add(op.Unsqueeze(at_b, _ints(2, 3)), at_a)  # (B, f, A, f)
    total = _double(op.ReduceSum(_int(op.Gather(flat, place, axis=1)), _ints(2, 4), keepdims=0))
    # All blocks but the last of a side are alike, so two rows tell how many pixels there are in each.
    last = op.Equal(op.Range(_number(0), b.reduced, _number(1)), op.Sub(b.reduced, _number(1)))
    ends = op.Gather(count_b, op.Concat(_ints(0), _vector(op.Sub(b.reduced, _number(1))), axis=0))
    count = op.Mul(op.Unsqueeze(ends, _ints(1)), count_a)  # (2, A)
    share = op.Mul(op.Floor(op.Div(_real(2.0**24), count)), _real(2.0**-24))
    half = op.Floor(op.Mul(count, _real(0.5)))
    row = op.Cast(last, to=TensorProto.INT64)
    return _int(op.Floor(op.Mul(op.Add(total, op.Gather(half, row)), op.Gather(share, row))))


def _blocks(axis: _Axis) -> tuple[Any, Any]:
    """Offsets of the pixels of each block, (reduced, factor), and how many there are (reduced,)."""
    first = op.Mul(op.Range(_number(0), axis.reduced, _number(1)), axis.factor)
    pixel = op.Add(op.Unsqueeze(first, _ints(1)), op.Range(_number(0), axis.factor, _number(1)))
    there = op.Less(pixel, axis.size)
    place = op.Where(there, op.Add(pixel, axis.low), axis.whole)
    return op.Mul(place, axis.stride), op.ReduceSum(_double(there), _ints(1), keepdims=0)


def _taps(axis: _Axis, side: int) -> tuple[Any, Any]:
    """The pixels that matter for each of the result's, and their weights, both (side, K)."""
    length = op.Div(_double(axis.size), _double(axis.factor))
    scale = op.Div(_double(op.Cast(length, to=TensorProto.FLOAT)), _real(float(side)))  # single, as Pillow keeps it
    support = op.Max(scale, _real(1.0))
    centre = op.Mul(_centres(side), scale)
    step = op.Mul(axis.factor, _number(side))
    most = op.Div(op.Sub(op.Add(axis.size, step), _number(1)), step)
    reach = op.Add(op.Mul(most, _number(2)), _number(3))
    first = op.Floor(op.Add(op.Sub(centre, support), _real(0.5)))
    x = op.Add(first, _double(op.Range(_number(0), reach, _number(1))))
    weights = _weights(x, centre, support, _double(axis.reduced))
    last = op.Sub(_double(axis.reduced), _real(1.0))
    return op.Cast(op.Min(op.Max(x, _real(0.0)), last), to=TensorProto.INT64), _int(weights)


def _every(axis: _Axis, corners: Any, column: int, side: int) -> Any:
    """Weights of all pixels of an axis for each box: (N, side, size)."""
    low, high = (  # single, as Pillow keeps them
        op.Cast(op.Gather(corners, _ints(k), axis=1), to=TensorProto.FLOAT) for k in (column, column + 2)
    )
    scale = op.Unsqueeze(op.Div(_double(op.Sub(high, low)), _real(float(side))), _ints(2))
    centre = op.Add(op.Unsqueeze(_double(low), _ints(2)), op.Mul(_centres(side), scale))
    x = _double(op.Range(_number(0), axis.size, _number(1)))
    return _weights(x, centre, op.Max(scale, _real(1.0)), _double(axis.reduced))


def _weights(x: Any, centre: Any, support: Any, size: Any) -> Any:
    """Of pixels x of the source, of which there are `size`; all numbers are doubles that broadcast."""
    away = op.Abs(op.Mul(op.Add(op.Sub(x, centre), _real(0.5)), op.Div(_real(1.0), support)))
    there = op.And(op.GreaterOrEqual(x, _real(0.0)), op.Less(x, size))
    weights = op.Mul(op.Max(op.Sub(_real(1.0), away), _real(0.0)), _double(there))
    weights = op.Div(weights, op.ReduceSum(weights, _ints(-1), keepdims=1))
    return op.Floor(op.Add(op.Mul(weights, _real(2.0**BITS)), _real(0.5)))


def _rounded(total: Any) -> Any:
    """Sums by weights -> bytes, as doubles: they hold all whole numbers in question."""
    shifted = op.Mul(op.Add(_double(total), _real(2.0 ** (BITS - 1))), _real(2.0**-BITS))
    return op.Max(op.Min(op.Floor(shifted), _real(255.0)), _real(0.0))


def _centres(side: int) -> Any:
    return _constant(np.arange(side)[:, None] + 0.5)


def _constant(value: np.ndarray) -> Any:
    return op.Constant(value=from_array(value))


def _ints(*values: int) -> Any:
    return op.Constant(value_ints=list(values))


def _number(value: int) -> Any:
    return op.Constant(value_int=value)


def _real(value: float) -> Any:
    return _constant(np.array(value))


def _vector(number: Any) -> Any:
    return op.Unsqueeze(number, _ints(0))


def _double(value: Any) -> Any:
    return op.Cast(value, to=TensorProto.DOUBLE)


def _int(value: Any) -> Any:
    return op.Cast(value, to=TensorProto.INT32)
