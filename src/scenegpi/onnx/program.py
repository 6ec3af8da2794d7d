"""A function of torch modules -> one self-contained ONNX program.

All named sizes are free: a program serves 0, 1 or any number of boxes, pairs and images. A function is traced on an
example, which takes seconds; Python code that depends on the example's sizes would be wrong for others, so the tests
run every program on several.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import torch
from torch import Tensor, nn

from scenegpi.errors import DataError, first_line, require
from scenegpi.vision.find import apart

OPSET = 18
Shapes = Mapping[str, Sequence[str | int]]
"""Shapes by name of an input, output or wire; free axes have names."""


class _Traced(nn.Module):
    def __init__(self, owner: nn.Module, call: Callable[..., Sequence[Tensor]], names: Sequence[str]) -> None:
        super().__init__()
        self.owner, self.call, self.names = owner, call, names

    def forward(self, *given: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.call(self.owner, **dict(zip(self.names, given, strict=True))))


def onnx_program(
    owner: nn.Module,
    call: Callable[..., Sequence[Tensor]],
    given: Mapping[str, Tensor],
    outputs: Sequence[str],
    shapes: Shapes,
) -> Any:
    """The `onnx.ModelProto` of ``call(owner, **given)``, with these names for its outputs."""
    require("export", "onnx", "onnx")
    import onnx

    names = (*given, *outputs)
    free = {name: {k: axis for k, axis in enumerate(shapes[name]) if isinstance(axis, str)} for name in names}
    data = BytesIO()
    training = owner.training
    with torch.no_grad(), _operators(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python values that depend on the example, and of a newer exporter
        try:
            torch.onnx.export(
                _Traced(owner, call, list(given)).eval(),
                tuple(given.values()),
                data,  # type: ignore[arg-type]  # a stream, which this exporter takes
                dynamo=False,
                opset_version=OPSET,
                input_names=list(given),
                output_names=list(outputs),
                dynamic_axes=free,
            )
        except torch.onnx.OnnxExporterError as error:
            raise DataError("export", f"torch cannot export it ({first_line(error)})") from None
        finally:
            owner.train(training)
    program = onnx.load_from_string(data.getvalue())
    info, graph = onnx.helper.make_tensor_value_info, program.graph
    fixed = {node.output[0] for node in graph.node if node.op_type == "Constant"}
    fixed |= {each.name for each in graph.initializer}
    wires: dict[str, str] = {}
    for node in list(graph.node):
        node.ClearField("doc_string")
        node.input[:] = [wires.get(name, name) for name in node.input]
        if node.op_type == "Reshape" and node.input[1] not in fixed:  # a size that is 0 means 0, not "as before"
            del node.attribute[:]
            node.attribute.append(onnx.helper.make_attribute("allowzero", 1))
        if node.op_type == "Identity" and node.attribute:
            about = {each.name: each for each in node.attribute}
            wires[node.output[0]] = name = about["wire"].s.decode()
            node.output[0] = name
            del node.attribute[:]
            graph.value_info.append(info(name, about["type"].i, shapes[name]))
        elif node.output[0] in wires.values():  # torch copies a wire that is also an output
            graph.node.remove(node)
    for value in graph.output:
        value.CopyFrom(info(value.name, value.type.tensor_type.elem_type, shapes[value.name]))
    return program


@torch.library.custom_op("scenegpi::wire", mutates_args=())
def wire(value: Tensor, name: str, rows: int = -1) -> Tensor:
    """The same values; in the program they have this name, so that a part of it can be extracted.

    With `rows`, the rest is traced with this many rows: torch would treat 0 rows, or 1, as special cases.
    """
    return value.clone() if rows < 0 else torch.rand(rows, *value.shape[1:]).to(value.dtype)


@torch.library.custom_op("scenegpi::suppress", mutates_args=())
def suppress(boxes: Tensor, score: Tensor, overlap: float, most: int) -> Tensor:
    """Non-maximum suppression as one operator: boxes (N, 4) in pixels, score (N,) -> rows that are kept (M,)."""
    return apart(boxes, score, overlap, most).clone()


def _wire(g: Any, value: Any, name: Any, *_: Any) -> Any:
    kind: Any = torch.onnx.JitScalarType.from_value(value).onnx_type()
    return g.op("Identity", value, wire_s=_number(name, "s"), type_i=int(kind)).setType(value.type())


def _suppress(g: Any, boxes: Any, score: Any, overlap: Any, most: Any) -> Any:
    """In ONNX a box ends before its right and lower sides, ours includes them."""
    zero = _constant(g, [0])
    whole = g.op("Add", g.op("Cast", boxes, to_i=1), _constant(g, [0.0, 0.0, 1.0, 1.0]))
    limits = (_constant(g, [_number(most, "i")]), _constant(g, [_number(overlap, "f")]), _constant(g, [0.0]))
    scores = g.op("Unsqueeze", score, _constant(g, [0, 1]))
    found = g.op("NonMaxSuppression", g.op("Unsqueeze", whole, zero), scores, *limits)
    return g.op("Gather", found, _constant(g, 2), axis_i=1)


def _resize(g: Any, image: Any, size: Any, *_: Any) -> Any:
    """Resizes a picture (1, 3, H, W)."""
    none = torch.onnx.symbolic_helper._optional_input_placeholder_tensor(g)
    return g.op("Resize", image, none, none, _constant(g, [1, 3, *_number(size, "is")]), mode_s="linear", antialias_i=1)


def _sort(g: Any, values: Any, *how: Any) -> Any:
    """Sorts a vector: TopK lists equal values in their order, so it is stable."""
    size = g.op("Shape", values)
    return g.op("TopK", values, size, axis_i=0, largest_i=_number(how[-1], "i"), sorted_i=1, outputs=2)


def _scatter(g: Any, out: Any, axis: Any, index: Any, values: Any, how: Any = None, *_: Any) -> Any:
    """Along axis 0. Whole rows are added at once, which is faster than one by one."""
    reduction = "add" if how is None else {"amax": "max", "amin": "min"}[_number(how, "s")]
    if index.node().kind() == "onnx::Expand" and torch.onnx.symbolic_helper._get_tensor_rank(values) == 2:
        return g.op("ScatterND", out, index.node().inputsAt(0), values, reduction_s=reduction)
    return g.op("ScatterElements", out, index, values, axis_i=0, reduction_s=reduction)


def _constant(g: Any, values: Any) -> Any:
    return g.op("Constant", value_t=torch.tensor(values))


def _number(value: Any, kind: str) -> Any:
    return torch.onnx.symbolic_helper._get_const(value, kind, "argument")


_OPERATORS: dict[str, Callable[..., Any]] = {
    "scenegpi::wire": _wire,
    "scenegpi::suppress": _suppress,
    "aten::_upsample_bilinear2d_aa": _resize,
    "aten::sort": _sort,
    "aten::scatter_add": _scatter,
    "aten::scatter_reduce": _scatter,
    "aten::argsort": lambda *given: _sort(*given)[1],
}


@contextmanager
def _operators() -> Iterator[None]:
    """Replaces these torch operators by ONNX ones while a function is exported."""
    for name, symbolic in _OPERATORS.items():
        torch.onnx.register_custom_op_symbolic(name, symbolic, OPSET)
    try:
        yield
    finally:
        for name in _OPERATORS:
            torch.onnx.unregister_custom_op_symbolic(name, OPSET)
