"""Probabilities of found boxes, fitted to annotated photos by logistic regression: that a box of the finder shows an
object, and how the evidence of two detectors is combined (`scenegpi.vision.combine`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scenegpi.boxes import box_iou
from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.training.label_head import report_unreadable
from scenegpi.vision.combine import SEEN, Things
from scenegpi.vision.config import FinderConfig
from scenegpi.vision.find import Finder
from scenegpi.vision.model import VisionModel
from scenegpi.vision.photos import EncodedPhoto, open_photo, photo_boxes

FITS = 0.5
"""A box that overlaps an annotated one by this much shows it."""
RIDGE = 1e-3
STEPS = 50
Photos = Sequence[tuple[Path, SceneGraph]]
Candidates = tuple[Tensor, Tensor, NDArray[np.float64]]
"""Boxes in pixels, their evidence, and the annotated boxes."""
Example = tuple[Things, NDArray[np.float64]]
"""Things of a photo, and the boxes (M, 4) that people annotated."""


def fit_finder(vision: VisionModel, photos: Photos) -> FinderConfig:
    """Weights that make a box's score, after suppression, the chance of matching an annotated one of these photos.

    Only the finder's logit is used: if the second look's and the box size are too, they dominate, and fewer of Visual
    Genome's boxes come first (docs/lab/vg150-photos.md).
    """
    config = replace(vision.config.finder or FinderConfig(), floor=0.0, named_floor=0.0)
    read = []
    for path, graph in photos:
        try:
            read.append(_read(Finder(vision, config), path, graph))
        except DataError as error:
            report_unreadable(error)
    # Which boxes are kept depends on their scores, so the fit is repeated on those kept after the first one.
    for _ in range(2 if read else 0):
        rows = [_outcomes(Finder(vision, config), *each) for each in read]
        x, y = (np.concatenate([row[k] for row in rows]) for k in range(2))
        weights = logistic(np.insert(x, 0, 1.0, axis=1), y, 2 * RIDGE * len(x))
        config = replace(config, weights=tuple(round(each, 4) for each in weights.tolist()))
    return replace(vision.config.finder or FinderConfig(), weights=config.weights)


@torch.inference_mode()
def _read(finder: Finder, path: Path, graph: SceneGraph) -> Candidates:
    photo = open_photo(path)
    _, boxes, evidence = finder.looked(finder.vision.photo_maps(EncodedPhoto(photo))[0])
    boxes = boxes.double().cpu() * torch.tensor([photo.shape[1], photo.shape[0]] * 2)
    return boxes, evidence.cpu(), photo_boxes(graph, photo)


def _outcomes(
    finder: Finder, boxes: Tensor, evidence: Tensor, truth: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The finder's logits of the boxes that are kept, (n, 1), and which match an annotated one, (n,)."""
    rows = finder.chosen(boxes, finder.chance(evidence))
    met = (box_iou(boxes[rows].numpy(), truth) >= FITS).any(axis=1)
    return evidence[rows, :1].double().numpy(), np.asarray(met, dtype=np.float64)


def fit_combination(examples: Sequence[Example], ridge: float = 1.0) -> dict[str, list[float]]:
    """Weights of each of SEEN.

    They rank things by the chance of being an annotated box's best match, with an overlap of at least 0.7: precise
    boxes come first, duplicates last. Then all are scaled and shifted alike, so that the chance is that of an overlap
    by half, as for our finder, and the order is kept.
    """
    features = np.concatenate([found.features for found, _ in examples])
    seen = np.concatenate([found.seen for found, _ in examples])
    tight = np.concatenate([_right(*each, 0.7, single=True) for each in examples])
    half = np.concatenate([_right(*each, 0.5, single=False) for each in examples])
    weights = np.stack([logistic(features[seen == k], tight[seen == k], ridge) for k in range(len(SEEN))])
    logits = (features * weights[seen]).sum(1)
    shift, scale = logistic(np.stack([np.ones(len(logits)), logits], 1), half, ridge)
    weights *= scale
    weights[:, 0] += shift
    return {name: [round(float(w), 4) for w in row] for name, row in zip(SEEN, weights, strict=True)}


def _right(found: Things, truth: NDArray[np.float64], overlap: float, single: bool) -> NDArray[np.float64]:
    """(N,) 1 for things that overlap an annotated box by at least `overlap`; if `single`, only the best one per box."""
    iou = box_iou(found.boxes, truth)
    right = iou >= overlap
    if single:
        right &= iou >= iou.max(axis=0, initial=0.0)
    return np.asarray(right.any(axis=1), dtype=np.float64)


def logistic(x: NDArray[np.float64], y: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    """Newton's method; the first column is 1 and not penalised. Columns that never vary keep the weight 0."""
    penalty = np.full(x.shape[1], ridge)
    penalty[0] = 1e-6
    weights = np.zeros(x.shape[1])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        gradient = x.T @ (y - p) - penalty * weights
        curvature = (x * (p * (1 - p))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        weights += step
        if np.abs(step).max() < 1e-8:
            break
    return weights
