"""Fits how the evidence of two detectors is combined (`vision.combine`) on annotated photos: logistic regression."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from scenegpi.boxes import box_iou
from scenegpi.vision.combine import SEEN, Things

Example = tuple[Things, NDArray[np.float64]]
"""Things of a photo, and the boxes (M, 4) that people annotated."""
STEPS = 50


def fit_combination(examples: Sequence[Example], ridge: float = 1.0) -> dict[str, list[float]]:
    """Weights of each of SEEN.

    They rank things by the chance to be the best one of an annotated box, by 0.7 at least: who sees where a thing ends
    comes first, and second boxes last. Then all are scaled and shifted alike, so that the chance is that of an overlap
    by half, as our finder counts it, and the order stays.
    """
    features = np.concatenate([found.features for found, _ in examples])
    seen = np.concatenate([found.seen for found, _ in examples])
    tight = np.concatenate([_right(*each, 0.7, single=True) for each in examples])
    half = np.concatenate([_right(*each, 0.5, single=False) for each in examples])
    weights = np.stack([_logistic(features[seen == k], tight[seen == k], ridge) for k in range(len(SEEN))])
    logits = (features * weights[seen]).sum(1)
    shift, scale = _logistic(np.stack([np.ones(len(logits)), logits], 1), half, ridge)
    weights *= scale
    weights[:, 0] += shift
    return {name: [round(float(w), 4) for w in row] for name, row in zip(SEEN, weights, strict=True)}


def _right(found: Things, truth: NDArray[np.float64], overlap: float, single: bool) -> NDArray[np.float64]:
    """(N,) 1 for things that overlap an annotated box by so much; of each box only the best one, if `single`."""
    if not len(truth) or not len(found.boxes):
        return np.zeros(len(found.boxes))
    iou = box_iou(found.boxes, truth)
    right = iou >= overlap
    if single:
        right &= iou >= iou.max(axis=0, keepdims=True)
    return np.asarray(right.any(axis=1), dtype=np.float64)


def _logistic(x: NDArray[np.float64], y: NDArray[np.float64], ridge: float) -> NDArray[np.float64]:
    """Newton's method; the first column is 1 and not penalized. Columns that never vary keep the weight 0."""
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
