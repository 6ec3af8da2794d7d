"""Models in ONNX files, run by onnxruntime: torch is not imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import DataError, GraphError
from scenegpi.features.arrays import SceneArrays
from scenegpi.files import parse_json
from scenegpi.models.relation_counts import RelationCounts
from scenegpi.onnx.session import Session
from scenegpi.onnx.vision import OnnxFinder, OnnxVision
from scenegpi.vocabulary import Vocabulary

FEW_PAIRS = 1 << 11
"""Of one call: what is computed of them stays in a CPU's cache, which is faster than more at a time."""


class OnnxModel:
    """The distributions of a model that was exported: what a `Predictor` asks of it.

    Args:
        file: a path, or the bytes of such a file.
        vision, finder: what names the boxes of a photo, and finds them, where the model does.
        threads: of a call; 0 leaves it to onnxruntime.
    """

    backend: Literal["onnx"] = "onnx"
    trained_on: None = None

    def __init__(
        self,
        file: str | Path | bytes,
        vision: OnnxVision | None = None,
        finder: OnnxFinder | None = None,
        threads: int = 1,
    ) -> None:
        self.vision, self.finder = vision, finder
        self._session = Session(file, "layout", threads)
        self._where, about = self._session.where, self._session.metadata
        try:
            self.vocabulary = Vocabulary.from_dict(parse_json(about["vocabulary"]))
            counts = parse_json(about["relation_counts"])
            self.relation_counts = None if counts is None else RelationCounts.from_dict(counts)
        except (GraphError, ValueError, KeyError, TypeError) as error:
            raise DataError(self._where, f"metadata cannot be read ({error})") from None
        self._check()

    def labels_only(self) -> OnnxModel:
        """An exported model speaks its labels alone."""
        return self

    def distributions(
        self, scenes: SceneArrays, task: Literal["predcls", "sgcls"]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The calibrated answer to a batch: (N, C) and (E, 1 + P), column 0 "no relation"."""
        found = [self._run(piece, task) for piece in scenes.pieces(FEW_PAIRS)]
        if len(found) == 1:
            return found[0]
        nodes, edges = zip(*found, strict=True)
        return np.concatenate(nodes), np.concatenate(edges)

    def _run(
        self, scenes: SceneArrays, task: Literal["predcls", "sgcls"]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        given: dict[str, Any] = {
            "boxes": scenes.boxes,
            "sizes": scenes.sizes,
            "label_dist": scenes.label_dist,
            "counts": scenes.counts,
            "labels_given": np.array(task == "predcls"),
        }
        if "pair_dist" in self._session.inputs:
            if scenes.pair_dist is None:
                raise GraphError("pair_dist: this model needs those of another system, and the graphs have none")
            given["pair_dist"] = scenes.pair_dist
        nodes, edges = self._session.run(["labels", "relations"], given)
        wanted = {"labels": (len(scenes.boxes), nodes), "relations": (int(scenes.edge_ptr[-1]), edges)}
        for name, (rows, found) in wanted.items():
            if found.dtype != np.float32 or found.ndim != 2 or len(found) != rows:
                raise DataError(self._where, f"{name}: {found.dtype} {found.shape}, expected {rows} rows of float32")
            if not ((found >= 0) & (found <= 1.001)).all():
                raise DataError(self._where, f"{name}: its answers are not probabilities")
        return nodes, edges

    def _check(self) -> None:
        """That the file's shapes are those of its vocabulary: what follows indexes by it."""
        labels, classes = len(self.vocabulary.objects), 1 + len(self.vocabulary.predicates)
        shapes = self._session.inputs | self._session.outputs
        for name, width in (("label_dist", labels), ("labels", labels), ("relations", classes)):
            if len(shapes.get(name, ())) != 2 or shapes[name][1] != width:
                raise DataError(self._where, f"{name}: shape {shapes.get(name)}, expected {width} columns")
        counts = self.relation_counts
        if counts is not None and not counts.as_subject.shape == counts.as_object.shape == (labels, classes - 1):
            raise DataError(self._where, f"relation_counts: of {counts.as_subject.shape} labels and predicates")


def open_onnx(model: Any) -> OnnxModel:
    """A file, a model's name or folder (exported once and kept), or a loaded model."""
    if isinstance(model, OnnxModel):
        return model
    if isinstance(model, str | Path):
        if Path(model).suffix == ".onnx":
            return OnnxModel(model)
        from scenegpi.onnx.exported import exported_file, forms

        parts = forms(model)
        return OnnxModel(
            exported_file(model),
            OnnxVision(lambda: exported_file(model, "vision")) if "vision" in parts else None,
            OnnxFinder(lambda: exported_file(model, "finder")) if "finder" in parts else None,
        )
    from scenegpi.onnx.export import model_bytes

    return OnnxModel(model_bytes(model))
