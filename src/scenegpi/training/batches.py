"""Training images -> batches: shuffled, augmented, cut by images or by pairs, shared out among processes.

Everything random is drawn by (seed, epoch, image), so an epoch is the same in one process or several, before and
after an interruption.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset, Sampler

from scenegpi.features.batch import SceneBatch, Seen, complete_pairs, edge_numbers, image_size
from scenegpi.graph import SceneGraph
from scenegpi.training.config import TrainConfig
from scenegpi.training.label_resampling import Lender
from scenegpi.training.simulate import simulate_labels

Key = tuple[int, int]
_ORDER, _MIRROR, _SIMULATE, _TASK, _DROP = range(5)


class TrainingImages(Dataset[SceneBatch]):
    """Images as an epoch sees them: keys (epoch, i) -> a batch. With task "both" some of the batches give labels.

    `looks` are the pair looks of each graph, or None for one without pixels. With label distributions to borrow, an
    image without any takes them from `lender`, others each epoch; and those that lend may come several times.
    """

    def __init__(
        self,
        graphs: Sequence[SceneGraph],
        config: TrainConfig,
        shares: NDArray[np.float64],
        looks: Sequence[NDArray[np.floating] | None] | None = None,
        lender: Lender | None = None,
    ) -> None:
        self.graphs, self.config, self.shares, self.looks, self.lender = graphs, config, shares, looks, lender
        own = [i for i, graph in enumerate(graphs) if graph.label_dist is not None] if lender is not None else []
        self.places = [*range(len(graphs)), *own * (config.augment.photos - 1)]
        self._drop_from = 0.0
        if config.augment.drop_from == "context":
            self._drop_from = float("inf") if config.model.context is None else config.optim.first_epochs

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, keys: list[Key]) -> SceneBatch:
        given = self.config.task == "predcls"
        if self.config.task == "both":
            drawn = np.random.default_rng((self.config.seed, *keys[0], _TASK)).random()
            given = bool(drawn < self.config.augment.given)
        return SceneBatch.seen_of([self.image(*key) for key in keys], given_labels=given)

    def image(self, epoch: int, i: int) -> Seen:
        """The image at place i as the epoch sees it. What is changed about an image holds for its pixels too, so one
        with looks is neither mirrored nor given boxes of another."""
        place = self.places[i]
        graph, looks = self.graphs[place], None if self.looks is None else self.looks[place]
        rng = np.random.default_rng((self.config.seed, epoch, i, _MIRROR))
        augment = self.config.augment
        if augment.drop and epoch >= self._drop_from:
            boxes = len(graph)
            graph, kept = drop_boxes(graph, np.random.default_rng((self.config.seed, epoch, i, _DROP)), augment.drop)
            if looks is not None and len(kept) < boxes:
                looks = looks[edge_numbers(kept[complete_pairs(np.array([len(kept)])).T], boxes)]
        if augment.distractors and len(self.graphs) > 1 and looks is None:
            other = (place + int(rng.integers(1, len(self.graphs)))) % len(self.graphs)
            graph = add_distractors(graph, self.graphs[other], rng, augment.distractors)
        if augment.mirror and rng.random() < 0.5 and looks is None:
            graph = mirror_image(graph)
        if self.config.task != "predcls":
            noise = (self.config.seed, epoch, i, _SIMULATE)
            if self.config.simulate is not None:
                graph = simulate_labels(graph, self.shares, self.config.simulate, noise)
            elif self.lender is not None and graph.label_dist is None:
                graph = self.lender.lend(graph, np.random.default_rng(noise))
        return Seen(graph, looks)


class EpochBatches(Sampler[list[Key]]):
    """The keys of each batch of an epoch that belongs to process `rank` of `world`.

    The shuffled images are cut into the same number of batches every epoch, each of about as many images, or pairs
    (`sizes` (n,) are the pairs of each image). Batch k goes to process k mod world: one process with batches of twice
    the size sees in each step what two processes see together.
    """

    def __init__(
        self, sizes: NDArray[np.int64], batch: int, pairs: int = 0, seed: int = 0, rank: int = 0, world: int = 1
    ) -> None:
        self.weights = (sizes if pairs else np.ones_like(sizes)).astype(np.float64) + (1e-3 if pairs else 0.0)
        wanted = -(-self.weights.sum() // ((pairs or batch) * world))
        self.steps = int(min(max(wanted, 1), max(len(sizes) // world, 1)))
        self.seed, self.rank, self.world, self.epoch = seed, rank, world, 0

    def set_epoch(self, epoch: int) -> None:
        """Which epoch the next iteration is."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[list[Key]]:
        order = np.random.default_rng((self.seed, self.epoch, _ORDER)).permutation(len(self.weights))
        cuts = even_cuts(self.weights[order], self.steps * self.world)
        for k in range(self.rank, self.steps * self.world, self.world):
            yield [(self.epoch, i) for i in order[cuts[k] : cuts[k + 1]].tolist()]


def even_cuts(weights: NDArray[np.float64], parts: int) -> NDArray[np.int64]:
    """(parts + 1,) places that cut the weights (n,) into parts of about equal sums, each of at least one."""
    n = len(weights)
    reached = np.cumsum(weights) / weights.sum()
    cuts = np.concatenate([[0], np.searchsorted(reached, np.arange(1, parts) / parts - 1e-12) + 1, [n]])
    steps = np.arange(parts + 1)
    cuts = np.maximum.accumulate(cuts - steps) + steps
    return np.asarray(np.minimum(cuts, n - (parts - steps)), dtype=np.int64)


def train_loader(images: TrainingImages, rank: int = 0, world: int = 1) -> DataLoader[Any]:
    """Batches of training images for one process."""
    config = images.config
    sizes = np.array(
        [len(graph) * (len(graph) - 1) for graph in map(images.graphs.__getitem__, images.places)], dtype=np.int64
    )
    sampler = EpochBatches(sizes, config.optim.batch, config.optim.pairs, config.seed, rank, world)
    return DataLoader(
        images,
        batch_size=None,
        sampler=sampler,
        collate_fn=_as_it_is,
        num_workers=config.optim.workers,
        persistent_workers=config.optim.workers > 0,
    )


def _as_it_is(batch: Any) -> Any:
    return batch


def mirror_image(graph: SceneGraph) -> SceneGraph:
    """Left and right change places: x becomes W - x."""
    width, _ = image_size(graph)
    boxes = graph.boxes.copy()
    boxes[:, [0, 2]] = width - graph.boxes[:, [2, 0]]
    return graph.with_fields(boxes=boxes)


def drop_boxes(graph: SceneGraph, rng: np.random.Generator, most: float) -> tuple[SceneGraph, NDArray[np.int64]]:
    """In half of the images, boxes are left out with all that hangs on them, at a rate drawn from 0 to `most`.

    At least two boxes are kept, and one relation if there was one. Gives the graph and the boxes kept, (n,) in order.
    """
    everything = np.arange(len(graph))
    dropped, rate = rng.random() < 0.5, most * rng.random()
    if not dropped or len(graph) <= 2:
        return graph, everything
    kept = rng.random(len(graph)) >= rate
    if len(graph.relations) and not kept[graph.relations[:, :2]].all(1).any():
        kept[graph.relations[rng.integers(len(graph.relations)), :2]] = True
    if kept.sum() < 2:
        kept[rng.choice(len(graph), 2, replace=False)] = True
    return (graph, everything) if kept.all() else (graph.subset(kept), np.flatnonzero(kept))


def add_distractors(graph: SceneGraph, other: SceneGraph, rng: np.random.Generator, rate: float) -> SceneGraph:
    """Some boxes of another image, scaled to this one, after its own: on average `rate` for each box of the image.

    Distributions that the graph carries are dropped: nothing is known about the new boxes.
    """
    count = min(int(rng.poisson(rate * len(graph))), len(other))
    if not count:
        return graph
    chosen = np.sort(rng.choice(len(other), count, replace=False))
    scale = np.array(image_size(graph)) / np.array(image_size(other))
    boxes = np.concatenate([graph.boxes, other.boxes[chosen] * np.tile(scale, 2)])
    labels = np.concatenate([graph.labels, other.labels[chosen]])
    nothing = {"scores": None, "label_dist": None, "pairs": None, "pair_dist": None}
    return graph.with_fields(boxes=boxes, labels=labels, **nothing)
