"""Models in ONNX files, run by onnxruntime: torch is not imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from scenegpi.errors import DataError, GraphError
from scenegpi.features.arrays import SceneArrays
from scenegpi.files import parse_json
from scenegpi.graph import SceneGraph
from scenegpi.models.relation_counts import RelationCounts
from scenegpi.onnx.session import FORMS, Form, Session
from scenegpi.vision.detect import Detections
from scenegpi.vision.photos import Photo, as_square, pixels_and_boxes
from scenegpi.vocabulary import Vocabulary

File = str | Path | bytes
FEW_PAIRS = 1 << 11
"""Pairs per call: few enough that their values stay in a CPU's cache, which is faster."""


class OnnxModel:
    """An exported model, with the interface for a `Predictor`.

    A file that reads photos is its own `vision`, which names the boxes of a photo, and may be its own `finder`.

    Args:
        file: a path, or the bytes of such a file.
        form: the model's inputs; by default the file's.
        photo_file: returns the file that reads photos when first needed; by default the same file.
    """

    backend: Literal["onnx"] = "onnx"
    trained_on: None = None

    def __init__(self, file: File, form: Form | None = None, photo_file: Callable[[], File] | None = None) -> None:
        whole = Session(file, *FORMS)
        self._where, about = whole.where, whole.metadata
        self._session = whole if whole.form == "layout" else Session(file, part="layout")
        self._form, self._photo_file = form or whole.form, photo_file or (lambda: file)
        try:
            self.vocabulary = Vocabulary.from_dict(parse_json(about["vocabulary"]))
            counts = parse_json(about["relation_counts"])
            self.relation_counts = None if counts is None else RelationCounts.from_dict(counts)
        except (GraphError, ValueError, KeyError, TypeError) as error:
            raise DataError(self._where, f"metadata cannot be read ({error})") from None
        self._check()

    def _check(self) -> None:
        """Checks that the file's shapes match its vocabulary, which later code indexes by."""
        labels, classes = len(self.vocabulary.objects), 1 + len(self.vocabulary.predicates)
        shapes = self._session.inputs | self._session.outputs
        for name, width in (("label_dist", labels), ("labels", labels), ("relations", classes)):
            if len(shapes.get(name, ())) != 2 or shapes[name][1] != width:
                raise DataError(self._where, f"{name}: shape {shapes.get(name)}, expected {width} columns")
        counts = self.relation_counts
        if counts is not None and not counts.as_subject.shape == counts.as_object.shape == (labels, classes - 1):
            raise DataError(self._where, f"relation_counts: of {counts.as_subject.shape} labels and predicates")

    @property
    def vision(self) -> OnnxModel | None:
        return None if self._form == "layout" else self

    @property
    def finder(self) -> OnnxModel | None:
        return self if self._form == "find" else None

    @property
    def names(self) -> Sequence[str]:
        return self.vocabulary.objects

    def labels_only(self) -> OnnxModel:
        """An exported model has only its labels as vocabulary."""
        return self

    def label_dist(self, photo: Any, graph: SceneGraph) -> NDArray[np.float32]:
        """P(label) of each box, calibrated: (N, C)."""
        image, boxes = pixels_and_boxes(photo, graph)
        found: NDArray[np.float32] = self._vision.run(["named"], _square(self._vision, image) | {"seen": boxes})[0]
        return found

    def detect(self, photo: Photo) -> Detections:
        """Boxes in pixels of the photo, (H, W, 3) bytes, with `label_dist`; best first."""
        boxes, sure, dist = self._finder.run(["boxes", "sure", "label_dist"], _square(self._finder, photo))
        label, sure = dist.argmax(axis=1), sure.astype(np.float64)
        score = sure * dist[np.arange(len(dist)), label]
        return Detections(boxes, label, score, self.names, (photo.shape[1], photo.shape[0]), dist, sure)

    def distributions(
        self, scenes: SceneArrays, task: Literal["predcls", "sgcls"]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The calibrated answer to a batch: (N, C) and (E, 1 + P), column 0 "no relation"."""
        if scenes.pair_dist is None and "pair_dist" in self._session.inputs:
            raise GraphError("pair_dist: this model needs another system's distributions, which the graphs lack")
        nodes, edges = zip(*(self._run(piece, task == "predcls") for piece in scenes.pieces(FEW_PAIRS)), strict=True)
        return np.concatenate(nodes), np.concatenate(edges)

    def _run(self, scenes: SceneArrays, labels_given: bool) -> list[NDArray[np.float32]]:
        names = ("boxes", "sizes", "label_dist", "counts", "pair_dist")
        given = {name: getattr(scenes, name) for name in names} | {"labels_given": np.array(labels_given)}
        answers = self._session.run(["labels", "relations"], given)
        sizes = {"labels": len(scenes.boxes), "relations": int(scenes.edge_ptr[-1])}
        for (name, rows), found in zip(sizes.items(), answers, strict=True):
            if found.dtype != np.float32 or found.ndim != 2 or len(found) != rows:
                raise DataError(self._where, f"{name}: {found.dtype} {found.shape}, expected {rows} rows of float32")
            if not ((found >= 0) & (found <= 1.001)).all():
                raise DataError(self._where, f"{name}: its answers are not probabilities")
        return answers

    @cached_property
    def _vision(self) -> Session:
        return Session(self._photo_file(), part="vision")

    @cached_property
    def _finder(self) -> Session:
        return Session(self._photo_file(), part="finder")


def _square(session: Session, photo: Photo) -> dict[str, Any]:
    size = np.array([photo.shape[1], photo.shape[0]], dtype=np.float64)
    return {"square": as_square(Image.fromarray(photo), session.inputs["square"][1]), "size": size}


def open_onnx(model: Any) -> OnnxModel:
    """A file, a model's name or folder (exported once and kept), or a loaded model."""
    if isinstance(model, OnnxModel):
        return model
    if isinstance(model, str | Path):
        if Path(model).suffix == ".onnx":
            return OnnxModel(model)
        from scenegpi.onnx.exported import exported_file, forms

        form = forms(model)[-1]
        return OnnxModel(exported_file(model), form, lambda: exported_file(model, form))
    from scenegpi.onnx.export import model_bytes

    return OnnxModel(model_bytes(model))
