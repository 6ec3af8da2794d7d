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


def fit_finder(vision: VisionModel, own: Photos, complete: Photos = ()) -> FinderConfig:
    """Weights by which the chance of a box, after suppression, is that of meeting an annotated one.

    Args:
        own: photos with the annotations that the model is for.
        complete: photos with those of the other annotation; they count as much as the own ones.
    """
    config = replace(vision.config.finder or FinderConfig(), floor=0.0, named_floor=0.0)
    photos = [[_read(Finder(vision, config), path, graph) for path, graph in some] for some in (own, complete) if some]
    for _ in range(TWICE):
        finder = Finder(vision, config)
        rows = [[_outcomes(finder, *each) for each in some] for some in photos]
        x, y = (torch.cat([one[k] for some in rows for one in some]) for k in range(2))
        shares = [len(torch.cat([one[1] for one in some])) for some in rows]
        weight = torch.cat([torch.full((n,), 1 / n, dtype=torch.float64) for n in shares]) / len(shares)
        config = replace(config, weights=tuple(round(each, 4) for each in _fitted(x, y, weight)))
    return replace(vision.config.finder or FinderConfig(), weights=config.weights)


def _fitted(x: Tensor, y: Tensor, weight: Tensor) -> list[float]:
    """Logistic regression: evidence (n, F), whether a thing was there (n,), and what each row counts (n,)."""
    weights = torch.zeros(1 + x.shape[1], dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        logits = weights[0] + x @ weights[1:]
        value = (
            binary_cross_entropy_with_logits(logits, y, weight, reduction="sum") + RIDGE * weights[1:].square().sum()
        )
        value.backward()
        return value

    optimiser.step(loss)
    return [float(each) for each in weights.detach()]


@torch.inference_mode()
def _read(finder: Finder, path: Path, graph: SceneGraph) -> Candidates:
    photo = open_photo(path)
    boxes, evidence = finder.looked(finder.vision.photo_maps(EncodedPhoto(photo))[0])
    boxes = boxes.double().cpu() * torch.tensor([photo.shape[1], photo.shape[0]] * 2)
    return boxes, evidence.cpu(), photo_boxes(graph, photo)


def _outcomes(finder: Finder, boxes: Tensor, evidence: Tensor, truth: NDArray[np.float64]) -> tuple[Tensor, Tensor]:
    """The evidence of the boxes that stay, (n, F), and which meet an annotated one, (n,)."""
    rows = finder.chosen(boxes, finder.chance(evidence))
    met = (box_iou(boxes[rows].numpy(), truth) >= FITS).any(axis=1)
    return evidence[rows].double(), torch.from_numpy(np.asarray(met, dtype=np.float64))
