"""Photo models to export: a new one that names boxes, and the shipped network, which finds them, with a small layout."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import matplotlib
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

import onnx_export.onnx_cases  # noqa: F401 - skips where the extra is missing
from models.model_cases import VOCABULARY, small
from scenegpi.features.arrays import SceneArrays
from scenegpi.graph import SceneGraph
from scenegpi.models import PRESETS, SceneModel, build_model, load_model
from scenegpi.models.calibration import Calibration, Calibrations
from scenegpi.onnx.export import model_bytes
from scenegpi.onnx.session import Form
from scenegpi.vision.config import BoxFeatureConfig, HeadConfig, VisionConfig

SMALL = BoxFeatureConfig(photo_size=96)


@cache
def small_photo_model() -> SceneModel:
    torch.manual_seed(0)
    vision = VisionConfig(features=SMALL, head=HeadConfig(hidden=16))
    made = build_model(replace(small(PRESETS["baseline"]), vision=vision), VOCABULARY)
    made.calibration = Calibrations(Calibration(0.8, 0.5, 1.3, 1.0), Calibration(1.2, -0.4, 0.7, 1.6))
    return _loud(made)


@cache
def finding_model() -> SceneModel:
    """The shipped photo network, which finds boxes, and a small layout model."""
    torch.manual_seed(0)
    shipped = load_model("vg150-photo").labels_only()  # what is exported speaks the labels alone
    config = replace(small(PRESETS["gpi-feature-attention"]), vision=shipped.config.vision)
    made = build_model(config, shipped.labels)
    made.vision = shipped.vision
    counts = torch.zeros(made.prior.counts.shape, dtype=torch.long)  # each pair of labels has one predicate of its own
    counts.scatter_(2, torch.randint(1, counts.shape[2], (*counts.shape[:2], 1)), 50)
    made.prior.set_counts(counts)
    return _loud(made)


@cache
def photo_bytes(name: str, form: Form) -> bytes:
    return model_bytes({"small": small_photo_model, "finding": finding_model}[name](), form)


@cache
def photo() -> NDArray[np.uint8]:
    """Matplotlib's portrait of Grace Hopper, 512 x 600."""
    file = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    return np.asarray(Image.open(file).convert("RGB"))


def in_torch(model: SceneModel, image: NDArray[np.uint8], graph: SceneGraph) -> tuple[np.ndarray, np.ndarray]:
    """What torch says of the boxes of a graph in a photo: (N, C) and (E, 1 + P)."""
    if len(graph) and graph.label_dist is None:
        graph = graph.replace(label_dist=model.vision.label_dist(image, graph))
    return model.distributions(SceneArrays.of([graph], given_labels=False), "sgcls")


def _loud(model: SceneModel) -> SceneModel:
    with torch.no_grad():  # a new model passes on what it reads; with weights everywhere it has something to say
        for each in model.network.parameters():
            if each.dim() > 1 and not each.any():
                each.normal_(0, 0.3)
    return model.eval()
