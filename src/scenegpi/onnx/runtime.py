"""Exported models that read boxes, run by onnxruntime: torch is not imported."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import DataError, GraphError
from scenegpi.features.arrays import SceneArrays
from scenegpi.files import parse_json
from scenegpi.models.relation_counts import RelationCounts
from scenegpi.onnx.session import Session
from scenegpi.vocabulary import Vocabulary

Form = Literal["layout", "photo", "find"]
FORMS: dict[Form, str] = {"layout": "layout 1", "photo": "photo 3", "find": "find 4"}
"""What a file reads: boxes and labels; a photo and boxes; a photo. A number is raised whenever inputs, outputs, what
they mean, or metadata change."""
FEW_PAIRS = 1 << 11
"""Per call: what is computed for them stays in a CPU's cache, which is faster than more at a time."""


class OnnxModel:
    """The distributions of an exported model (its path, or its bytes): what a `Predictor` asks of it."""

    vision: None = None
    finder: None = None
    trained_on: None = None

    def __init__(self, file: str | Path | bytes) -> None:
        self._session = Session(file)
        self._where, about = self._session.where, self._session.metadata
        found = about.get("scenegpi", "")
        if found in (FORMS["photo"], FORMS["find"]):
            said = "reads photos: only files exported without --photo and --find are run here (docs/onnx.md)"
            raise DataError(self._where, said)
        if found != FORMS["layout"]:
            raise DataError(self._where, f"not a file that this version exported ({FORMS['layout']}; {found!r:.40})")
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
        nodes, edges = zip(*(self._run(piece, task) for piece in scenes.pieces(FEW_PAIRS)), strict=True)
        return np.concatenate(nodes), np.concatenate(edges)

    def _run(self, scenes: SceneArrays, task: str) -> list[NDArray[np.float32]]:
        given = {name: getattr(scenes, name) for name in ("boxes", "sizes", "label_dist", "counts", "pair_dist")}
        if "pair_dist" in self._session.inputs and scenes.pair_dist is None:
            raise GraphError("pair_dist: this model needs those of another system, and the graphs have none")
        found = self._session.run(["labels", "relations"], given | {"labels_given": np.array(task == "predcls")})
        wanted = {"labels": len(scenes.boxes), "relations": int(scenes.edge_ptr[-1])}
        for (name, rows), values in zip(wanted.items(), found, strict=True):
            if values.dtype != np.float32 or values.ndim != 2 or len(values) != rows:
                raise DataError(self._where, f"{name}: {values.dtype} {values.shape}, expected {rows} rows of float32")
            if not ((values >= 0) & (values <= 1.001)).all():
                raise DataError(self._where, f"{name}: its answers are not probabilities")
        return found

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
