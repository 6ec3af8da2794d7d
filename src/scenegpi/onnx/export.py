"""Models and layers -> ONNX files. Needs torch and the extra `[onnx]`; running a file needs onnxruntime only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from scenegpi import __version__
from scenegpi.errors import DataError
from scenegpi.files import whole_file
from scenegpi.gpi import GPILayer, Recurrent, complete_edges
from scenegpi.models.build import SceneModel
from scenegpi.models.checkpoint import load_model
from scenegpi.onnx.modules import FinderModule, LayerModule, LayoutModule, RecurrentModule, VisionModule
from scenegpi.onnx.parts import joined
from scenegpi.onnx.program import OPSET, onnx_program
from scenegpi.onnx.session import FORMS, Form
from scenegpi.options import plain

Inputs = dict[str, tuple[Tensor, Mapping[int, str]]]
Shapes = dict[str, Sequence[str | int]]
_SIZES = (3, 4)
"""Boxes of the images that a program is traced with; any other numbers give the same program."""


def export_model(
    model: SceneModel | str | Path, path: str | Path, form: Form = "layout", overwrite: bool = False
) -> Path:
    """Writes a model (a loaded one, a folder, or a name that ships) as one file; `form` is what it reads.

    "layout": boxes and labels; "photo": a photo and boxes; "find": a photo; see docs/onnx.md.
    """
    with whole_file(Path(path), overwrite) as part:
        part.write_bytes(model_bytes(model if isinstance(model, SceneModel) else load_model(model), form))
    return Path(path)


def export_layer(layer: GPILayer | Recurrent, path: str | Path, overwrite: bool = False) -> Path:
    """Writes a layer, or a recurrent one, as one file; see docs/layers.md."""
    inputs, outputs = _recurrent(layer) if isinstance(layer, Recurrent) else _layer(layer)
    module: nn.Module = RecurrentModule(layer) if isinstance(layer, Recurrent) else LayerModule(layer)
    training = layer.training
    try:
        data = _file(onnx_program(module, inputs, outputs), {})
    finally:
        layer.train(training)
    with whole_file(Path(path), overwrite) as part:
        part.write_bytes(data)
    return Path(path)


def model_bytes(model: SceneModel, form: Form = "layout") -> bytes:
    """The file of a model, in its labels alone."""
    model = model.labels_only()
    if model.device.type != "cpu":
        raise DataError("export", "the model must be on the CPU")
    if not model.network.exportable:
        raise DataError("export", f"{model.config.system}: this system cannot be exported")
    known = model.relation_counts
    metadata = {
        "scenegpi": FORMS[form],
        "vocabulary": _json(model.vocabulary.to_dict()),
        "calibration": _json(plain(model.calibration)),
        "relation_counts": _json(None if known is None else known.to_dict()),
    }
    training = model.training
    try:
        if form in ("photo", "find"):
            eyes = _part(model, "finder" if form == "find" else "vision")
            return _file(joined(eyes, _part(model, "layout")), metadata)
        return _file(_part(model, form), metadata)
    finally:
        model.train(training)


def _part(model: SceneModel, form: Form) -> Any:
    module = {"layout": LayoutModule, "vision": VisionModule, "finder": FinderModule}[form](model)
    return onnx_program(module, _inputs(model, form), _outputs(model, form))


def _file(program: Any, metadata: Mapping[str, str]) -> bytes:
    import onnx

    onnx.helper.set_model_props(program, {**metadata, "scenegpi_version": __version__, "opset": str(OPSET)})
    program.producer_name = "scenegpi"
    onnx.checker.check_model(program, full_check=True)
    data: bytes = program.SerializeToString()
    return data


def _inputs(model: SceneModel, form: Form) -> Inputs:
    n, e = sum(_SIZES), sum(k * (k - 1) for k in _SIZES)
    corner = torch.rand(n, 2, dtype=torch.float64)
    boxes: tuple[Tensor, Mapping[int, str]] = (torch.cat([corner, corner + 1], 1), {0: "boxes"})
    if form != "layout":
        assert model.vision is not None
        side = model.vision.config.features.photo_size
        square = torch.randint(256, (3, side, side), dtype=torch.uint8)
        photo: Inputs = {"square": (square, {}), "size": (torch.tensor([60.0, 50.0], dtype=torch.float64), {})}
        return photo | ({"boxes": boxes} if form == "vision" else {})
    labels, classes = len(model.vocabulary.objects), 1 + len(model.vocabulary.predicates)
    inputs: Inputs = {
        "boxes": boxes,
        "sizes": (torch.full((len(_SIZES), 2), 2.0, dtype=torch.float64), {0: "images"}),
        "label_dist": (torch.full((n, labels), 1 / labels), {0: "boxes"}),
        "counts": (torch.tensor(_SIZES), {0: "images"}),
        "labels_given": (torch.tensor(True), {}),
    }
    if model.config.baseline.prior == "given":
        inputs["pair_dist"] = (torch.full((e, classes), 1 / classes), {0: "pairs"})
    return inputs


def _outputs(model: SceneModel, form: Form) -> Shapes:
    labels, classes = len(model.vocabulary.objects), 1 + len(model.vocabulary.predicates)
    if form == "layout":
        return {"labels": ("boxes", labels), "relations": ("pairs", classes), "pairs": (2, "pairs")}
    found: Shapes = {"boxes": ("boxes", 4), "sure": ("boxes",)} if form == "finder" else {}
    return {**found, "label_dist": ("boxes", labels)}


def _layer(layer: GPILayer) -> tuple[Inputs, Shapes]:
    edges = complete_edges(_SIZES)
    n, e = sum(_SIZES), edges.shape[1]
    inputs: Inputs = {
        "x": (torch.randn(n, layer.node_dim), {0: "nodes"}),
        "edge_index": (edges, {1: "edges"}),
        "edge_attr": (torch.randn(e, layer.edge_dim), {0: "edges"}),
        "counts": (torch.tensor(_SIZES), {0: "graphs"}),
    }
    if layer.x_table is not None:
        inputs["x_class"] = (torch.zeros(n, dtype=torch.long), {0: "nodes"})
    if layer.edge_table is not None:
        inputs["edge_class"] = (torch.zeros(e, dtype=torch.long), {0: "edges"})
    with torch.no_grad():
        found = LayerModule(layer)(**{name: example for name, (example, _) in inputs.items()})
    names = {"nodes": "nodes"} | ({"edges": "edges"} if len(found) == 3 else {}) | {"graph": "graphs"}
    return inputs, {name: (axis, each.shape[1]) for (name, axis), each in zip(names.items(), found, strict=True)}


def _recurrent(recurrent: Recurrent) -> tuple[Inputs, Shapes]:
    layer = recurrent.layer
    read, given = _layer(layer)
    if "edges" not in given:
        raise DataError("export", "a recurrent layer is exported with edge_out: joint node and edge labels")
    node, edge = int(given["nodes"][1]), int(given["edges"][1])
    x, edge_attr = read["x"][0], read["edge_attr"][0]
    inputs: Inputs = {
        "node_logits": (x[:, :node], {0: "nodes"}),
        "edge_index": read["edge_index"],
        "edge_logits": (edge_attr[:, :edge], {0: "edges"}),
        "counts": read["counts"],
    }
    if layer.node_dim > node:
        inputs["node_static"] = (x[:, node:], {0: "nodes"})
    if layer.edge_dim > edge:
        inputs["edge_static"] = (edge_attr[:, edge:], {0: "edges"})
    return inputs, {"nodes": ("nodes", node), "edges": ("edges", edge)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
