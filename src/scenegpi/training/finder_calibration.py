"""The chance that a found box shows something, fitted to photos that the network was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from scenegpi.boxes import box_iou
from scenegpi.graph import SceneGraph
from scenegpi.vision.config import FinderConfig
from scenegpi.vision.find import Finder
from scenegpi.vision.model import VisionModel
from scenegpi.vision.photos import EncodedPhoto, open_photo, photo_boxes

FITS = 0.5
"""A box that overlaps an annotated one by this much shows it."""
RIDGE = 1e-3
TWICE = 2
"""Which boxes stay depends on their chances: fitted again to those that stay after the first fit."""
Photos = Sequence[tuple[Path, SceneGraph]]
Candidates = tuple[Tensor, Tensor, NDArray[np.float64]]
"""Boxes in pixels, their evidence, and the annotated boxes."""


def fit_finder(vision: VisionModel, photos: Photos) -> FinderConfig:
    """Weights by which the chance of a box, after suppression, is that of meeting an annotated one of these photos."""
    config = replace(vision.config.finder or FinderConfig(), floor=0.0, named_floor=0.0)
    read = [_read(Finder(vision, config), path, graph) for path, graph in photos]
    for _ in range(TWICE):
        rows = [_outcomes(Finder(vision, config), *each) for each in read]
        x, y = (torch.cat([row[k] for row in rows]) for k in range(2))
        config = replace(config, weights=tuple(round(each, 4) for each in _fitted(x, y)))
    return replace(vision.config.finder or FinderConfig(), weights=config.weights)


def _fitted(x: Tensor, y: Tensor) -> list[float]:
    """Logistic regression: evidence (n, F), and whether a thing was there (n,)."""
    weights = torch.zeros(1 + x.shape[1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        logits = weights[0] + x @ weights[1:]
        value = binary_cross_entropy_with_logits(logits, y) + RIDGE * weights[1:].square().sum()
        value.backward()
        return value

    optimiser.step(loss)
    return [float(each) for each in weights.detach()]


@torch.inference_mode()
def _read(finder: Finder, path: Path, graph: SceneGraph) -> Candidates:
    photo = open_photo(path)
    _, boxes, evidence = finder.looked(finder.vision.photo_maps(EncodedPhoto(photo))[0])
    boxes = boxes.double().cpu() * torch.tensor([photo.shape[1], photo.shape[0]] * 2)
    return boxes, evidence.cpu(), photo_boxes(graph, photo)


def _outcomes(finder: Finder, boxes: Tensor, evidence: Tensor, truth: NDArray[np.float64]) -> tuple[Tensor, Tensor]:
    """The evidence of the boxes that stay, (n, F), and which meet an annotated one, (n,)."""
    rows = finder.chosen(boxes, finder.chance(evidence))
    met = (box_iou(boxes[rows].numpy(), truth) >= FITS).any(axis=1)
    return evidence[rows].double(), torch.from_numpy(np.asarray(met, dtype=np.float64))
