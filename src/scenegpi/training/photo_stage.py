"""The photo network of a run: trained on each half of the photos, then on all of them, other photos in every batch.

    RUN/vision/half0/       all photos but those of the first half; it predicts them (held_out.safetensors)
    RUN/vision/half1/       and the other way round
    RUN/vision/whole/       starts from the mean of the two, and goes on with all photos

Each step writes its state while it goes on and its weights when it is done, so a killed run loses at most a part of a
pass (scenegpi.training.photo_fit).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError
from scenegpi.files import read_object, whole_file
from scenegpi.graph import SceneGraph
from scenegpi.metrics.calibration import fit_temperature
from scenegpi.models.checkpoint import read_tensors
from scenegpi.training.config import MachineConfig
from scenegpi.training.label_head import FittedVision, folds_of, label_figures
from scenegpi.training.photo_config import OtherConfig, PhotoFitConfig
from scenegpi.training.photo_fit import fit_network, new_vision
from scenegpi.training.photo_module import mean_weights
from scenegpi.training.photo_sets import LabelSets, TrainingPhoto, joined, own_photos
from scenegpi.training.processes import is_first_process, wait_for
from scenegpi.vision.config import VisionConfig
from scenegpi.vision.model import VisionModel, graph_geometry
from scenegpi.vision.photos import pixels_and_boxes
from scenegpi.vocabulary import Vocabulary

HALVES = 2
HELD_OUT = "held_out.safetensors"


class Photos(NamedTuple):
    """Photos of a run with their graphs, and what the other annotation has: id -> photo and boxes; ids of the same."""

    paths: Sequence[Path]
    graphs: Sequence[SceneGraph]
    other: dict[str, tuple[Path, SceneGraph]]
    same: dict[str, str]
    sets: LabelSets

    def subset(self, rows: Sequence[int]) -> Photos:
        return self._replace(paths=[self.paths[i] for i in rows], graphs=[self.graphs[i] for i in rows])

    def training(self, repeat: int) -> list[TrainingPhoto]:
        """As the network sees them in a pass."""
        own = own_photos(self.paths, self.graphs)
        ids = [str(graph.image_id) for graph in self.graphs]
        return joined(own, ids, self.other, self.same, self.sets, repeat) if self.other else own


def open_photos(
    vision: VisionModel, paths: Sequence[Path], graphs: Sequence[SceneGraph], options: OtherConfig
) -> Photos:
    """The photos of a run and those of the other annotation."""
    labels = vision.labels.objects
    if not options.path:
        return Photos(paths, graphs, {}, {}, LabelSets(labels, vision.names))
    dataset = open_dataset(options.path, images=options.photos)
    same = {str(here): str(there) for here, there in read_object(Path(options.same)).items()} if options.same else {}
    needed = {same[name] for graph in graphs if (name := str(graph.image_id)) in same}
    rows = [i for i in range(len(dataset)) if dataset.image_path(i) is not None]
    if not rows:
        raise DataError(options.path, "no photo of its images was found (photo.other.photos)")
    ids = {i: str(dataset[i].image_id) for i in rows}
    free = [i for i in rows if ids[i] not in needed]
    if options.limit and options.limit < len(free):
        free = [free[k * len(free) // options.limit] for k in range(options.limit)]
    chosen = [*(i for i in rows if ids[i] in needed), *free]
    other = {ids[i]: (path, dataset[i]) for i in chosen if (path := dataset.image_path(i)) is not None}
    return Photos(paths, graphs, other, same, LabelSets(labels, vision.names, dataset.vocabulary.objects))


def fit_photo_network(
    config: VisionConfig,
    vocabulary: Vocabulary,
    photos: Sequence[Path],
    graphs: Sequence[SceneGraph],
    options: PhotoFitConfig,
    folder: Path,
    *,
    seed: int = 0,
    progress: Callable[[str, int, int], Any] | None = None,
    shown: bool = False,
    unreadable: Callable[[DataError], Any] | None = None,
    machine: MachineConfig | None = None,
) -> FittedVision:
    """Trains the network and its label head on photos and the labels of their graphs, as `fit_vision` does heads.

    Args:
        folder: of the stage.
        progress: called with what is being done, the number done, and the total, where no bar of `shown` tells.
        unreadable: called with the error of a photo that can't be read; its held-out distribution is None.
        machine: where it is trained; all processes call this.
    """
    whole = new_vision(config, vocabulary, seed)
    data = open_photos(whole, photos, graphs, options.other)
    halves: list[VisionModel] = []
    logits: dict[int, Tensor] = {}
    for k in range(HALVES):
        vision = new_vision(config, vocabulary, seed)
        name, place = f"photos, half {k + 1}", folder / f"half{k}"
        fold = folds_of(len(photos), HALVES, seed)
        mine, others = (np.flatnonzero(which).tolist() for which in (fold != k, fold == k))
        some = data.subset(mine).training(options.other.repeat)
        fit_network(
            vision,
            some,
            data.sets,
            options,
            options.epochs,
            place,
            seed=seed + k,
            name=name,
            progress=shown,
            machine=machine,
        )
        halves.append(vision)
        logits |= held_out_logits(
            vision, others, photos, graphs, place / HELD_OUT, k, progress=progress, unreadable=unreadable
        )
    whole.load_state_dict(mean_weights(list(halves)))
    fit_whole(whole, data, options, folder / "whole", seed=seed + HALVES, shown=shown, machine=machine)
    return _calibrated(whole, graphs, logits)


def fit_whole(
    vision: VisionModel,
    data: Photos,
    options: PhotoFitConfig,
    folder: Path,
    *,
    seed: int,
    shown: bool,
    machine: MachineConfig | None,
) -> None:
    """Goes on with all photos, in place, at a share of the rate."""
    slower = replace(
        options, rate=options.rate * options.whole_rate, backbone_rate=options.backbone_rate * options.whole_rate
    )
    fit_network(
        vision,
        data.training(options.other.repeat),
        data.sets,
        slower,
        options.whole_epochs,
        folder,
        seed=seed,
        name="photos, all",
        progress=shown,
        measure=False,
        machine=machine,
    )


def held_out_logits(
    vision: VisionModel,
    others: Sequence[int],
    photos: Sequence[Path],
    graphs: Sequence[SceneGraph],
    file: Path,
    k: int,
    *,
    progress: Callable[[str, int, int], Any] | None = None,
    unreadable: Callable[[DataError], Any] | None = None,
) -> dict[int, Tensor]:
    """Number of a photo -> logits ``(N, C)`` of its boxes, by a network that has not seen it; kept in `file`."""
    from safetensors.torch import save_file

    counts, names = [len(graphs[i]) for i in others], len(vision.labels.objects)
    if not is_first_process():
        wait_for(file)
    elif not file.is_file():
        rows = [torch.full((count, names), torch.nan) for count in counts]  # of a photo that can't be read
        for done, i in enumerate(others):
            try:
                rows[done] = box_logits(vision, photos[i], graphs[i])
            except DataError as error:
                if unreadable is None:
                    raise
                unreadable(error)
            if progress is not None:
                progress(f"held out, half {k + 1}", done + 1, len(others))
        with whole_file(file) as part:
            save_file({"logits": torch.cat(rows)}, part)
    wanted = {"logits": torch.empty(sum(counts), names, device="meta")}
    kept = read_tensors(file, wanted)["logits"].split(counts)
    return {i: rows for i, rows in zip(others, kept, strict=True) if not bool(rows.isnan().any())}


@torch.inference_mode()
def box_logits(vision: VisionModel, photo: Any, graph: SceneGraph) -> Tensor:
    """The label head's logits for the boxes of a photo, ``(N, C)``, the temperature not applied."""
    return vision.head(vision.extractor(*pixels_and_boxes(photo, graph)), graph_geometry(graph))


def _calibrated(whole: VisionModel, graphs: Sequence[SceneGraph], logits: dict[int, Tensor]) -> FittedVision:
    """The model with the temperature that suits what the halves said of the photos they had not seen."""
    places = sorted(logits)
    rows = torch.cat([logits[i] for i in places])
    labels = torch.from_numpy(np.concatenate([graphs[i].labels for i in places]).astype(np.int64))
    image = torch.arange(len(places)).repeat_interleave(torch.tensor([len(logits[i]) for i in places]))
    temperature = fit_temperature(rows, labels, image)
    whole.head.temperature.fill_(temperature)
    held_out: list[NDArray[np.float32] | None] = [None] * len(graphs)
    for i in places:
        held_out[i] = (logits[i] / temperature).softmax(1).numpy()
    return FittedVision(whole.eval(), held_out, label_figures(rows, labels, temperature))
