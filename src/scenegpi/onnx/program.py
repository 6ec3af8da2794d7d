"""A torch module -> the bytes of one self-contained ONNX file, checked.

All sizes that are named are free: a program serves 0, 1 or any number of boxes, pairs and images.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from io import StringIO

import torch
from torch import Tensor, nn

from scenegpi.errors import require

OPSET = 18
_LOUD = ("torch.onnx", "torch.export", "onnxscript", "onnx_ir")


def onnx_bytes(
    module: nn.Module,
    inputs: Mapping[str, tuple[Tensor, Mapping[int, str]]],
    outputs: Mapping[str, Sequence[str | int]],
    metadata: Mapping[str, str],
) -> bytes:
    """The program of a module in evaluation mode.

    Args:
        module: takes the inputs by name.
        inputs: name -> an example, and the names of its free axes.
        outputs: name -> its shape, with the names of its free axes.
        metadata: custom entries of the file.
    """
    require("export", "onnx", "onnx", "onnxscript")
    import onnx
    import onnx_ir as ir

    from scenegpi.onnx.operators import translations
    from scenegpi.onnx.simplify import simplify

    with torch.no_grad(), _quiet():
        program = torch.onnx.export(
            module.eval(),
            kwargs={name: example for name, (example, _) in inputs.items()},
            dynamo=True,
            verbose=False,
            opset_version=OPSET,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes={name: dict(axes) or None for name, (_, axes) in inputs.items()},
            custom_translation_table=translations(),
        )
    assert program is not None
    for value, shape in zip(program.model.graph.outputs, outputs.values(), strict=True):
        value.shape = ir.Shape(shape)
    simplify(program.model.graph)
    for part in (program.model.graph, *program.model.functions.values()):
        for node in part:  # where in our source a node comes from is no business of a reader
            node.metadata_props.clear()
            node.doc_string = None
    for value in program.model.graph.initializers.values():
        value.metadata_props.clear()
    program.model.metadata_props.clear()
    program.model.metadata_props.update(metadata)
    program.model.producer_name = "scenegpi"
    proto = program.model_proto
    onnx.checker.check_model(proto, full_check=True)
    data: bytes = proto.SerializeToString()
    return data


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter tells its developers a lot that is no news to a user."""
    loggers = [logging.getLogger(name) for name in _LOUD]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
