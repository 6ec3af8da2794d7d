"""Training images -> batches: shuffled, augmented, divided evenly, distributed among processes.

Everything random is drawn by (seed, epoch, image), so an epoch is the same in one process or several, before and
after an interruption.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from torch.utils.data import DataLoader, Dataset, Sampler

from scenegpi.features.arrays import image_size
from scenegpi.features.batch import SceneBatch
from scenegpi.graph import SceneGraph
from scenegpi.training.config import TrainConfig
from scenegpi.training.label_resampling import LabelResampler

Key = tuple[int, int]
_ORDER, _MIRROR, _LABELS, _TASK, _DROP = range(5)


class TrainingImages(Dataset[SceneBatch]):
    """Images as seen in an epoch: keys (epoch, i) -> a batch. With task "both", labels are given in some of the
    batches.

    With a `resampler`, images without label distributions get some, drawn anew each epoch; those that have their own
    may come several times per epoch.
    """

    def __init__(
        self, graphs: Sequence[SceneGraph], config: TrainConfig, resampler: LabelResampler | None = None
    ) -> None:
        self.graphs, self.config, self.resampler = graphs, config, resampler
        own = [i for i, graph in enumerate(graphs) if graph.label_dist is not None] if resampler is not None else []
        self.places = [*range(len(graphs)), *own * (config.stage.augment.photos - 1)]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, keys: list[Key]) -> SceneBatch:
        given = self.config.task == "predcls"
        if self.config.task == "both":
            given = bool(self._rng(*keys[0], _TASK).random() < self.config.stage.augment.given)
        return SceneBatch.of([self.image(*key) for key in keys], given_labels=given)

    def image(self, epoch: int, i: int) -> SceneGraph:
        """The image at position i as seen in the epoch."""
        graph, augment = self.graphs[self.places[i]], self.config.stage.augment
        if augment.drop:
            graph = drop_boxes(graph, self._rng(epoch, i, _DROP), augment.drop)
        if augment.mirror and self._rng(epoch, i, _MIRROR).random() < 0.5:
            graph = mirror_image(graph)
        if self.resampler is not None and graph.label_dist is None:
            graph = self.resampler(graph, self._rng(epoch, i, _LABELS))
        return graph

    def _rng(self, epoch: int, i: int, what: int) -> np.random.Generator:
        return np.random.default_rng((self.config.seed, epoch, i, what))


def mirror_image(graph: SceneGraph) -> SceneGraph:
    """The mirror image: x becomes W - x."""
    width, _ = image_size(graph)
    boxes = graph.boxes.copy()
    boxes[:, [0, 2]] = width - graph.boxes[:, [2, 0]]
    return graph.with_fields(boxes=boxes)


def drop_boxes(graph: SceneGraph, rng: np.random.Generator, most: float) -> SceneGraph:
    """In half of the images, leaves out boxes and their relations at a rate drawn from 0 to `most`.

    At least two boxes are kept, and one relation if there was one.
    """
    dropped, rate = rng.random() < 0.5, most * rng.random()
    if not dropped or len(graph) <= 2:
        return graph
    kept = rng.random(len(graph)) >= rate
    if len(graph.relations) and not kept[graph.relations[:, :2]].all(1).any():
        kept[graph.relations[rng.integers(len(graph.relations)), :2]] = True
    if kept.sum() < 2:
        kept[rng.choice(len(graph), 2, replace=False)] = True
    return graph if kept.all() else graph.subset(kept)


class EpochBatches(Sampler[list[Key]]):
    """The keys of each batch of an epoch that belongs to process `rank` of `world`.

    The shuffled images are cut into the same number of batches every epoch. Batch k goes to process k mod world: one
    process with batches of twice the size sees in each step what two processes see together. A pass over very many
    images may be divided into `parts`: each counts as an epoch, after which the state is written.
    """

    def __init__(self, images: int, batch: int, seed: int = 0, rank: int = 0, world: int = 1, parts: int = 1) -> None:
        wanted = -(-images // (batch * world * parts))
        self.steps = min(max(wanted, 1), max(images // (world * parts), 1))
        self.images, self.seed, self.rank, self.world, self.parts, self.epoch = images, seed, rank, world, parts, 0

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch of the next iteration."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[list[Key]]:
        order = np.random.default_rng((self.seed, self.epoch // self.parts, _ORDER)).permutation(self.images)
        each = self.steps * self.world  # batches of a part
        cuts = -(-np.arange(each * self.parts + 1) * self.images // (each * self.parts))  # the larger batches first
        first = self.epoch % self.parts * each
        for k in range(first + self.rank, first + each, self.world):
            yield [(self.epoch, i) for i in order[cuts[k] : cuts[k + 1]].tolist()]


def train_loader(images: TrainingImages, rank: int = 0, world: int = 1) -> DataLoader[Any]:
    """Batches of training images for one process."""
    sampler = EpochBatches(len(images), images.config.stage.optim.batch, images.config.seed, rank, world)
    return DataLoader(images, batch_size=None, sampler=sampler, collate_fn=as_they_are)


def as_they_are(batch: Any) -> Any:
    """A collate function for items that are already batches."""
    return batch
