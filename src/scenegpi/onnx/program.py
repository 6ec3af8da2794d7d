"""A torch module -> one self-contained ONNX program, checked.

All sizes that are named are free: a program serves 0, 1 or any number of boxes, pairs and images. A module is traced
on an example, which takes seconds; what depends on the example's sizes in Python would be wrong for others, so the
tests run every program on several.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from scenegpi import boxes as box_tools
from scenegpi.errors import DataError, require

OPSET = 18


def onnx_program(
    module: nn.Module,
    inputs: Mapping[str, tuple[Tensor, Mapping[int, str]]],
    outputs: Mapping[str, Sequence[str | int]],
) -> Any:
    """The `onnx.ModelProto` of a module in evaluation mode.

    Args:
        module: takes the inputs by name.
        inputs: name -> an example, and the names of its free axes.
        outputs: name -> its shape, with the names of its free axes.
    """
    require("export", "onnx", "onnx")
    import onnx

    free = {name: dict(axes) for name, (_, axes) in inputs.items() if axes}
    free |= {name: {k: each for k, each in enumerate(s) if isinstance(each, str)} for name, s in outputs.items()}
    data = BytesIO()
    with torch.no_grad(), _operators(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python values that depend on the example, and of a newer exporter
        try:
            torch.onnx.export(
                module.eval(),
                (),
                data,  # type: ignore[arg-type]  # a stream, which this exporter takes
                kwargs={name: example for name, (example, _) in inputs.items()},
                dynamo=False,
                opset_version=OPSET,
                input_names=list(inputs),
                output_names=list(outputs),
                dynamic_axes=free,
            )
        except torch.onnx.OnnxExporterError as error:
            raise DataError("export", f"torch cannot export it ({str(error).splitlines()[0]:.200})") from None
    program = onnx.load_from_string(data.getvalue())
    fixed = {node.output[0] for node in program.graph.node if node.op_type == "Constant"}
    fixed |= {each.name for each in program.graph.initializer}
    for node in program.graph.node:
        node.ClearField("doc_string")
        if node.op_type == "Reshape" and node.input[1] not in fixed:  # a size that is 0 means 0, not "as before"
            del node.attribute[:]
            node.attribute.append(onnx.helper.make_attribute("allowzero", 1))
    for value, shape in zip(program.graph.output, outputs.values(), strict=True):
        value.type.tensor_type.ClearField("shape")
        for each in shape:
            value.type.tensor_type.shape.dim.add(**{"dim_param" if isinstance(each, str) else "dim_value": each})
    return program


@torch.library.custom_op("scenegpi::suppress", mutates_args=())
def suppress(boxes: Tensor, score: Tensor, overlap: float, most: int) -> Tensor:
    """Non-maximum suppression as one operator: boxes (N, 4) in pixels, score (N,) -> rows that stay (M,)."""
    kept = box_tools.suppress(boxes.numpy(), score.numpy(), np.zeros(len(boxes), dtype=np.int64), overlap)
    return torch.from_numpy(kept[:most].copy())


def _suppress(g: Any, boxes: Any, score: Any, overlap: Any, most: Any) -> Any:
    """Its boxes have no pixel of their own at the right and lower end, ours do."""

    def constant(*values: float, dtype: torch.dtype = torch.float32) -> Any:
        return g.op("Constant", value_t=torch.tensor(values, dtype=dtype))

    zero = constant(0, dtype=torch.int64)
    whole = g.op("Add", g.op("Cast", boxes, to_i=1), constant(0, 0, 1, 1))
    scores = g.op("Unsqueeze", score, constant(0, 1, dtype=torch.int64))
    limits = (constant(_number(most, "i"), dtype=torch.int64), constant(_number(overlap, "f")), constant(0))
    found = g.op("NonMaxSuppression", g.op("Unsqueeze", whole, zero), scores, *limits)
    return g.op("Gather", found, g.op("Constant", value_t=torch.tensor(2)), axis_i=1)


def _sort(g: Any, values: Any, *how: Any) -> Any:
    """Of a vector: TopK lists equal values in their order, so it is stable."""
    size = g.op("Shape", values)
    return g.op("TopK", values, size, axis_i=0, largest_i=_number(how[-1], "i"), sorted_i=1, outputs=2)


def _argsort(g: Any, values: Any, *how: Any) -> Any:
    return _sort(g, values, *how)[1]


def _scatter_add(g: Any, out: Any, axis: Any, index: Any, values: Any) -> Any:
    return _scatter(g, out, index, values, "add")


def _scatter_reduce(g: Any, out: Any, axis: Any, index: Any, values: Any, reduce: Any, include_self: Any) -> Any:
    return _scatter(g, out, index, values, {"amax": "max", "amin": "min"}[_number(reduce, "s")])


def _scatter(g: Any, out: Any, index: Any, values: Any, reduction: str) -> Any:
    """Along axis 0. Whole rows are added at once, which is faster than one by one."""
    ranked = torch.onnx.symbolic_helper._get_tensor_rank(values)
    if index.node().kind() == "onnx::Expand" and ranked == 2:  # rows (M, 1) written out for each column
        rows = index.node().inputsAt(0)
        return g.op("ScatterND", out, rows, values, reduction_s=reduction)
    return g.op("ScatterElements", out, index, values, axis_i=0, reduction_s=reduction)


def _number(value: Any, kind: str) -> Any:
    return torch.onnx.symbolic_helper._get_const(value, kind, "argument")


_OPERATORS: dict[str, Callable[..., Any]] = {
    "scenegpi::suppress": _suppress,
    "aten::sort": _sort,
    "aten::argsort": _argsort,
    "aten::scatter_add": _scatter_add,
    "aten::scatter_reduce": _scatter_reduce,
}


@contextmanager
def _operators() -> Iterator[None]:
    """What these operators of torch are in ONNX, for as long as a module is exported."""
    for name, symbolic in _OPERATORS.items():
        torch.onnx.register_custom_op_symbolic(name, symbolic, OPSET)
    try:
        yield
    finally:
        for name in _OPERATORS:
            torch.onnx.unregister_custom_op_symbolic(name, OPSET)
