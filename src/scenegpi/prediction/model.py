"""The interface of a model for `Predictor`, run by torch, or by onnxruntime without torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import OptionError
from scenegpi.features.arrays import SceneArrays
from scenegpi.graph import SceneGraph
from scenegpi.models.relation_counts import RelationCounts
from scenegpi.vocabulary import Vocabulary

if TYPE_CHECKING:
    from scenegpi.models.fingerprint import Fingerprint
    from scenegpi.vision.detect import Detector

Task = Literal["predcls", "sgcls"]
Backend = Literal["torch", "onnx"]


class Vision(Protocol):
    """Predicts labels for the boxes of a photo."""

    def label_dist(self, photo: Any, graph: SceneGraph) -> NDArray[np.float32]:
        """P(label) of each box, calibrated: (N, C)."""
        ...


class Model(Protocol):
    """Distributions of boxes and pairs; `vision` names the boxes of a photo, `finder` finds them; each may be None."""

    @property
    def vocabulary(self) -> Vocabulary: ...
    @property
    def vision(self) -> Vision | None: ...
    @property
    def finder(self) -> Detector | None: ...
    @property
    def backend(self) -> Backend: ...
    @property
    def relation_counts(self) -> RelationCounts | None: ...
    @property
    def trained_on(self) -> Fingerprint | None: ...

    def labels_only(self) -> Model:
        """The same model with the labels that it was trained on, without everyday names."""
        ...

    def distributions(self, scenes: SceneArrays, task: Task) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The calibrated answer to a batch: (N, C) and (E, 1 + P), column 0 "no relation"."""
        ...


def open_model(model: Model | str | Path, backend: Backend | None = None, device: Any = "cpu") -> Model:
    """A name that ships, a folder, an ONNX file or a loaded model, ready to predict.

    `backend` None runs an ONNX file with onnxruntime and everything else with torch. With "onnx" torch is imported only
    to export a model first, which is done once.
    """
    if backend not in (None, "torch", "onnx"):
        raise OptionError(f"backend: {backend!r:.40} is not one of torch, onnx")
    exported = isinstance(model, str | Path) and Path(model).suffix == ".onnx"
    if exported and backend == "torch":
        raise OptionError(f"backend: {model} is an ONNX file, which torch cannot run; use onnx")
    if exported or backend == "onnx":
        from scenegpi.onnx.runtime import open_onnx

        if str(device) != "cpu":
            raise OptionError(f"device: {str(device)!r:.40}: the ONNX backend runs on the CPU")
        return open_onnx(model)
    from scenegpi.models.build import SceneModel
    from scenegpi.models.checkpoint import load_model

    if isinstance(model, str | Path):
        return load_model(model, device)
    return model.to(device) if isinstance(model, SceneModel) else model
