"""Exported models to test on, each exported once per test process: that takes seconds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from models.model_cases import VOCABULARY, small_model
from paper.systems.system_cases import SYSTEMS, small_system
from scenegpi.features.arrays import SceneArrays
from scenegpi.graph import SceneGraph
from scenegpi.models import BaselineConfig, ModelConfig, SceneModel, build_model
from scenegpi.models.calibration import Calibration, Calibrations
from scenegpi.onnx.export import model_bytes
from scenegpi.onnx.runtime import OnnxModel

for package in ("onnx", "onnxruntime"):
    pytest.importorskip(package, reason=f"the extra [onnx] is not installed ({package})")

CALIBRATED = Calibrations(Calibration(0.8, 0.5, 1.3, 1.0), Calibration(1.2, -0.4, 0.7, 1.6))


@cache
def model(name: str) -> SceneModel:
    """A preset with narrow layers; "everything" has the options that no preset has, "given" reads pair distributions.

    "... on baseline" are systems on top of one.
    """
    if name.partition(" on ")[0] in SYSTEMS:
        return small_system(name)
    if name == "given":
        config = ModelConfig(BaselineConfig(layers=0, prior="given", refine_labels=False))
        return build_model(config, VOCABULARY).eval()
    if name == "everything":
        made = small_model("gpi-linguistic", aggregation="max", steps=2, strict=True, read_again=True)
        made.calibration = CALIBRATED
        return made
    return small_model(name)


@cache
def exported_bytes(name: str) -> bytes:
    return model_bytes(model(name))


@cache
def exported(name: str) -> OnnxModel:
    return OnnxModel(exported_bytes(name))


def assert_equal(name: str, graphs: Sequence[SceneGraph], task: str, tolerance: float = 1e-4) -> None:
    scenes = SceneArrays.of(graphs, given_labels=task == "predcls")
    for found, wanted in zip(
        exported(name).distributions(scenes, task), model(name).distributions(scenes, task), strict=True
    ):
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype == np.float32
        assert np.abs(found - wanted).max(initial=0) <= tolerance
