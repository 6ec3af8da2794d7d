"""The chance that a found box shows something, fitted to photos that the network was not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from scenegpi.boxes import box_iou
from scenegpi.graph import SceneGraph
from scenegpi.vision.config import FinderConfig
from scenegpi.vision.find import Finder
from scenegpi.vision.model import VisionModel
from scenegpi.vision.photos import EncodedPhoto, open_photo, photo_boxes

FITS = 0.5
"""A box that overlaps an annotated one by this much shows it."""
HARDLY = 0.2
"""Below this chance a box is hardly one of kind 0."""
Photos = Sequence[tuple[Path, SceneGraph]]


def fit_finder(vision: VisionModel, own: Photos, complete: Photos = ()) -> FinderConfig:
    """Slopes and offsets by which the chance of a box, after suppression, is that of meeting an annotated one.

    Args:
        own: photos with the annotations that the model is for.
        complete: photos with those of the other annotation, which lists every thing of kind 0. Without them both kinds
            are fitted to `own`; with them kind 0 is fitted to these, and kind 1 to the own boxes that are hardly of
            kind 0.
    """
    finder = Finder(vision, replace(vision.config.finder or FinderConfig(), floor=0.0, named_floor=0.0))
    x, y = _outcomes(finder, own)
    if len(complete):
        seen, met = _outcomes(finder, complete)
        first = _fitted(seen[:, :1], met)
        rest = torch.sigmoid(first[0] * x[:, 0] + first[1]) < HARDLY
        second = _fitted(x[rest, 1:], y[rest])
        found = [first[0], second[0], first[1], second[1]]
    else:
        found = _fitted(x, y)
    slope, other, offset, last = (round(each, 4) for each in found)
    return replace(vision.config.finder or FinderConfig(), slopes=(slope, other), offsets=(offset, last))


def _fitted(x: Tensor, y: Tensor) -> list[float]:
    """Slopes and offsets of greatest likelihood: logits (n, k) and whether a thing of either kind was there (n,)."""
    kinds = x.shape[1]
    weights = torch.tensor([1.0] * kinds + [0.0] * kinds, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        # log(1 - chance) is a sum, so the likelihood is computed from it.
        none = logsigmoid(-(x * weights[:kinds] + weights[kinds:])).sum(1)
        some = torch.log(-torch.expm1(none.clamp_max(-1e-9)))
        value = -(y * some + (1 - y) * none).mean()
        value.backward()
        return value

    optimiser.step(loss)
    return [float(each) for each in weights.detach()]


@torch.inference_mode()
def _read(finder: Finder, path: Path, graph: SceneGraph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    photo = open_photo(path)
    boxes, logits = finder.looked(finder.vision.photo_maps(EncodedPhoto(photo))[0])
    boxes = boxes.double().cpu() * torch.tensor([photo.shape[1], photo.shape[0]] * 2)
    logits = logits.cpu()
    rows = finder.chosen(boxes, finder.chance(logits))
    overlap = box_iou(boxes[rows].numpy(), photo_boxes(graph, photo))
    return logits[rows].double().numpy(), np.asarray((overlap >= FITS).any(axis=1), dtype=np.float64)


def _outcomes(finder: Finder, photos: Photos) -> tuple[Tensor, Tensor]:
    """The second look's logits of the boxes that stay in all photos, (n, KINDS), and which meet an annotated one."""
    logits, met = zip(*(_read(finder, path, graph) for path, graph in photos), strict=True)
    return torch.from_numpy(np.concatenate(logits)), torch.from_numpy(np.concatenate(met))
