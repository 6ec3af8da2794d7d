"""Models and layers -> ONNX files. Needs torch and the extra `[onnx]`; running a file needs onnxruntime only."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from scenegpi import __version__
from scenegpi.errors import DataError
from scenegpi.files import whole_file
from scenegpi.gpi import GPILayer, Recurrent, complete_edges
from scenegpi.models.build import SceneModel
from scenegpi.models.checkpoint import load_model
from scenegpi.onnx.modules import find, layer, layout, photo
from scenegpi.onnx.program import OPSET, Shapes, onnx_program
from scenegpi.onnx.session import FORMS, Form
from scenegpi.options import plain

_SIZES = (3, 4)
"""Boxes of the images that a program is traced with; any other numbers give the same program."""
_N, _E = sum(_SIZES), sum(k * (k - 1) for k in _SIZES)


def export_model(
    model: SceneModel | str | Path, path: str | Path, form: Form = "layout", overwrite: bool = False
) -> Path:
    """Writes a model (loaded, a folder, or a shipped name) as one file; `form` tells its inputs.

    "layout": boxes and labels; "photo": a photo and boxes; "find": a photo; see docs/onnx.md.
    """
    with whole_file(Path(path), overwrite) as part:
        part.write_bytes(model_bytes(model if isinstance(model, SceneModel) else load_model(model), form))
    return Path(path)


def export_layer(owner: GPILayer | Recurrent, path: str | Path, overwrite: bool = False) -> Path:
    """Writes a layer, or a recurrent one, as one file; see docs/layers.md."""
    given, shapes = _layer(owner)
    outputs = [name for name in shapes if name not in given]
    data = _file(onnx_program(owner, layer, given, outputs, shapes), {})
    with whole_file(Path(path), overwrite) as part:
        part.write_bytes(data)
    return Path(path)


def model_bytes(model: SceneModel, form: Form = "layout") -> bytes:
    """The file of a model, without everyday names."""
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
    outputs = [*(("boxes", "sure") if form == "find" else ()), "labels", "relations", "pairs"]
    calls: dict[Form, Callable[..., Sequence[Tensor]]] = {"layout": layout, "photo": photo, "find": find}
    return _file(onnx_program(model, calls[form], _example(model, form), outputs, _shapes(model)), metadata)


def _file(program: Any, metadata: Mapping[str, str]) -> bytes:
    import onnx

    onnx.helper.set_model_props(program, {**metadata, "scenegpi_version": __version__, "opset": str(OPSET)})
    program.producer_name = "scenegpi"
    onnx.checker.check_model(program, full_check=True)
    data: bytes = program.SerializeToString()
    return data


def _shapes(model: SceneModel) -> Shapes:
    """The names of all tensors that are named in a model's file."""
    labels, classes = len(model.vocabulary.objects), 1 + len(model.vocabulary.predicates)
    side = 0 if model.vision is None else model.vision.config.features.photo_size
    return {
        "image": ("height", "width", 3),
        "square": (3, side, side),
        "size": (2,),
        "seen": ("seen", 4),
        "named": ("seen", labels),
        "boxes": ("boxes", 4),
        "sure": ("boxes",),
        "sizes": ("images", 2),
        "label_dist": ("boxes", labels),
        "counts": ("images",),
        "labels_given": (),
        "pair_dist": ("pairs", classes),
        "labels": ("boxes", labels),
        "relations": ("pairs", classes),
        "pairs": (2, "pairs"),
    }


def _example(model: SceneModel, form: Form) -> dict[str, Tensor]:
    labels, classes = len(model.vocabulary.objects), 1 + len(model.vocabulary.predicates)
    corner = torch.rand(_N, 2, dtype=torch.float64)
    boxes = torch.cat([corner, corner + 1], 1)
    if form != "layout":
        if model.vision is not None:  # weights of another package or model are read before it is traced
            model.vision.backbone.features(torch.zeros(1, 3, 32, 32), ("early",))
        image = torch.randint(256, (50, 60, 3), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
        return {"image": image, "boxes": boxes} if form == "photo" else {"image": image}
    given = {
        "boxes": boxes,
        "sizes": torch.full((len(_SIZES), 2), 2.0, dtype=torch.float64),
        "label_dist": torch.full((_N, labels), 1 / labels),
        "counts": torch.tensor(_SIZES),
        "labels_given": torch.tensor(True),
    }
    if model.config.baseline.prior == "given":
        given["pair_dist"] = torch.full((_E, classes), 1 / classes)
    return given


def _layer(owner: GPILayer | Recurrent) -> tuple[dict[str, Tensor], Shapes]:
    """Example inputs of a layer; the shapes of its inputs and outputs."""
    one = owner.layer if isinstance(owner, Recurrent) else owner
    x, edge_attr = torch.randn(_N, one.node_dim), torch.randn(_E, one.edge_dim)
    given = {"x": x, "edge_index": complete_edges(_SIZES), "edge_attr": edge_attr, "counts": torch.tensor(_SIZES)}
    if one.x_table is not None:
        given["x_class"] = torch.zeros(_N, dtype=torch.long)
    if one.edge_table is not None:
        given["edge_class"] = torch.zeros(_E, dtype=torch.long)
    with torch.no_grad():
        found = layer(one, **given)
    outputs = dict(zip(("nodes", "edges", "graph") if len(found) == 3 else ("nodes", "graph"), found, strict=True))
    if isinstance(owner, Recurrent):
        if "edges" not in outputs:
            raise DataError("export", "a recurrent layer is exported with edge_out: joint node and edge labels")
        del outputs["graph"]
        node, edge = outputs["nodes"].shape[1], outputs["edges"].shape[1]
        given = {
            "node_logits": x[:, :node],
            "edge_index": given["edge_index"],
            "edge_logits": edge_attr[:, :edge],
            "counts": given["counts"],
            "node_static": x[:, node:],
            "edge_static": edge_attr[:, edge:],
        }
        given = {name: value for name, value in given.items() if value.shape[-1]}
    axes = {_N: "nodes", _E: "edges", len(_SIZES): "graphs"}
    shapes: dict[str, tuple[str | int, ...]] = {
        name: (axes[len(value)], *value.shape[1:]) for name, value in (given | outputs).items()
    }
    return given, shapes | {"edge_index": (2, "edges")}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
