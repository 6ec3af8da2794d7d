"""The label head's logits for boxes of training photos: by a network that has not seen them, or as if it had not.

    logits = kept_logits(half, others, photos, graphs, file)            # of the photos that a half is held out for
    blur = blur_as_unseen(vision, seen, unseen)                         # pairs of photo and graph
    logits = kept_logits(vision, every, photos, graphs, file, blur)     # by a network that has seen them

A network names more boxes right in photos that it was trained on, and a graph model that learned from such labels would
trust them too much. In a blurred photo it names fewer: `blur_as_unseen` finds the blur by which it is right as often as
in photos that it has not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageFilter
from torch import Tensor

from scenegpi.errors import DataError
from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph
from scenegpi.models.checkpoint import read_tensors
from scenegpi.progress import progress
from scenegpi.training.label_head import report_unreadable
from scenegpi.training.processes import is_first_process, wait_for
from scenegpi.vision.model import VisionModel, graph_geometry
from scenegpi.vision.photos import EncodedPhoto, pixels_and_boxes

SAMPLE = 300
"""Number of photos of each kind on which the blur is found."""
MOST, STEPS = 1 / 64, 6
"""The maximum blur, and the number of times that the interval is halved."""

Pairs = Sequence[tuple[Path, SceneGraph]]


def kept_logits(
    vision: VisionModel,
    which: Sequence[int],
    photos: Sequence[Path],
    graphs: Sequence[SceneGraph],
    file: Path,
    blur: float = 0.0,
    shown: bool = False,
) -> dict[int, Tensor]:
    """Number of a photo of `which` -> logits ``(N, C)`` of its boxes; kept in `file`. All processes call this."""
    from safetensors.torch import save_file

    counts, names = [len(graphs[i]) for i in which], len(vision.labels.objects)
    if not is_first_process():
        wait_for(file)
    elif not file.is_file():
        rows = [torch.zeros(count, names) for count in counts]  # zeros remain for a photo that can't be read
        with progress("labels of training photos", len(which), shown) as advance:
            for done, i in enumerate(which):
                try:
                    rows[done] = box_logits(vision, blurred(photos[i], blur), graphs[i])
                except DataError as error:
                    report_unreadable(error)
                advance()
        with whole_file(file) as part:
            save_file({"logits": torch.cat(rows)}, part)
    wanted = {"logits": torch.empty(sum(counts), names, device="meta")}
    kept = read_tensors(file, wanted)["logits"].split(counts)
    return {i: rows for i, rows in zip(which, kept, strict=True) if bool(rows.any())}


@torch.inference_mode()
def box_logits(vision: VisionModel, photo: Any, graph: SceneGraph) -> Tensor:
    """The label head's logits for the boxes of a photo, ``(N, C)``, before the temperature."""
    return vision.head(vision.extractor(*pixels_and_boxes(photo, graph)), graph_geometry(graph))


def blurred(photo: Path, blur: float) -> EncodedPhoto:
    """A photo under a Gaussian whose standard deviation is this fraction of its width, and of its height."""
    found = EncodedPhoto.of(photo)
    if not blur:
        return found
    height, width = found.pixels.shape[:2]
    soft = Image.fromarray(found.pixels).filter(ImageFilter.GaussianBlur((blur * width, blur * height)))
    return EncodedPhoto(np.asarray(soft), found.size)


def blur_as_unseen(vision: VisionModel, seen: Pairs, unseen: Pairs) -> float:
    """The blur by which boxes of photos that the network was trained on are named right as often as those of others,
    measured on `SAMPLE` of each; 0 if they are not named better anyway."""
    wanted = fraction_right(vision, unseen)
    if fraction_right(vision, seen) <= wanted:
        return 0.0
    low, high = 0.0, MOST
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if fraction_right(vision, seen, middle) > wanted else (low, middle)
    return (low + high) / 2


def fraction_right(vision: VisionModel, pairs: Pairs, blur: float = 0.0) -> float:
    """The fraction of boxes whose most probable label is theirs, on `SAMPLE` photos, evenly spread; 0 without any."""
    right = boxes = 0
    step = max(len(pairs) / SAMPLE, 1.0)
    for photo, graph in (pairs[int(k * step)] for k in range(min(len(pairs), SAMPLE))):
        try:
            found = box_logits(vision, blurred(photo, blur), graph).argmax(1)
        except DataError:  # it is reported when its labels are read
            continue
        right += int((found == torch.from_numpy(graph.labels.astype(np.int64))).sum())
        boxes += len(graph)
    return right / max(boxes, 1)
