r"""SceneGraphs -> one flat batch, as `SceneArrays` lays them out: no padding, all images at once.

Row 0 of `edge_index` is the subject, which aggregates: layers take it with ``flow="target_to_source"``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from scenegpi.features.arrays import IMAGES, PAIRS, SceneArrays
from scenegpi.graph import SceneGraph
from scenegpi.pairs import edge_numbers
from scenegpi.vocabulary import Vocabulary


def _no_rows() -> Tensor:
    return torch.zeros(0, dtype=torch.long)


@dataclass(frozen=True)
class SceneBatch:
    """G images with N boxes and E ordered pairs.

    Inputs: `boxes` (N, 4) double; `sizes` (G, 2) width, height; `label_dist` (N, C); `pair_dist` (E, 1 + P) or None.
    Shape: `batch` (N,) image of each box; `ptr` (G + 1,) first box and `edge_ptr` (G + 1,) first edge of each image;
    `edge_index` (2, E).
    Targets: `labels` (N,); the rows of annotated pairs, sorted by edge: `relation_edge` (M,), `relation_class` (M,)
    in 1..P as a column of a distribution, and `relation_count` (M,), how often the row occurs in the image.
    Rows with subject == object are not pairs and are left out. `ids` (G) names the images.
    """

    vocabulary: Vocabulary
    boxes: Tensor
    sizes: Tensor
    labels: Tensor
    label_dist: Tensor
    batch: Tensor
    ptr: Tensor
    edge_index: Tensor
    edge_ptr: Tensor
    pair_dist: Tensor | None = None
    relation_edge: Tensor = field(default_factory=_no_rows)
    relation_class: Tensor = field(default_factory=_no_rows)
    relation_count: Tensor = field(default_factory=_no_rows)
    ids: tuple[int | str | None, ...] = ()

    @classmethod
    def of(cls, graphs: Sequence[SceneGraph], *, given_labels: bool = True) -> SceneBatch:
        """The batch of these graphs, which share a vocabulary; distributions and sizes as in `SceneArrays.of`."""
        scenes = SceneArrays.of(graphs, given_labels)
        edge, label, count = torch.from_numpy(_relation_rows(graphs, scenes))
        return replace(
            cls.from_arrays(scenes),
            relation_edge=edge,
            relation_class=label,
            relation_count=count,
            ids=tuple(graph.key for graph in graphs),
        )

    @classmethod
    def from_arrays(cls, scenes: SceneArrays) -> SceneBatch:
        """The same as tensors, without relations: the inputs for prediction."""
        same = ("boxes", "sizes", "labels", "label_dist", "ptr", "edge_index", "edge_ptr")
        arrays = {name: getattr(scenes, name) for name in same}
        arrays["batch"] = np.repeat(np.arange(len(scenes.counts)), scenes.counts)
        if scenes.pair_dist is not None:
            arrays["pair_dist"] = scenes.pair_dist
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        return cls(scenes.vocabulary, **tensors, ids=(None,) * len(scenes.counts))

    @property
    def num_graphs(self) -> int:
        return self.sizes.shape[0]

    @property
    def num_edges(self) -> int:
        return self.edge_index.shape[1]

    def to(self, device: torch.device | str) -> SceneBatch:
        """The batch with its tensors on a device; mps has no double precision."""
        where = torch.device(device)
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        moved: dict[str, Any] = {name: value.to(where, kept_dtype(value, where)) for name, value in tensors.items()}
        return replace(self, **moved)

    def target_distribution(self) -> Tensor:
        """Soft targets (E, 1 + P): the share of each predicate in the rows of a pair; else "no relation"."""
        out = torch.zeros(self.num_edges, 1 + len(self.vocabulary.predicates), device=self.boxes.device)
        out[:, 0] = 1
        out[self.relation_edge, 0] = 0
        total = torch.zeros_like(out[:, 0]).index_add_(0, self.relation_edge, self.relation_count.float())
        out[self.relation_edge, self.relation_class] = self.relation_count / total[self.relation_edge]
        return out


def kept_dtype(tensor: Tensor, device: torch.device) -> torch.dtype:
    """The dtype on a device: unchanged, but single precision on mps, which has no double."""
    return torch.float32 if device.type == "mps" and tensor.dtype == torch.float64 else tensor.dtype


def _relation_rows(graphs: Sequence[SceneGraph], scenes: SceneArrays) -> NDArray[np.int64]:
    """Distinct (edge, class) and how often each occurs: (3, M)."""
    relations = np.concatenate([graph.relations for graph in graphs]).astype(np.int64)
    image = np.repeat(np.arange(len(graphs)), [len(graph.relations) for graph in graphs])
    real = relations[:, 0] != relations[:, 1]
    image, predicate, classes = image[real], relations[real, 2], 1 + len(scenes.vocabulary.predicates)
    edge = scenes.edge_ptr[image] + edge_numbers(relations[real, :2], scenes.counts[image])
    keys, count = np.unique(edge * classes + predicate + 1, return_counts=True)
    return np.stack([*np.divmod(keys, classes), count])


def grouped(graphs: Iterable[SceneGraph]) -> Iterator[list[SceneGraph]]:
    """Groups of at most `IMAGES` graphs with together at most `PAIRS` ordered pairs; one graph may have more."""
    some: list[SceneGraph] = []
    held = 0
    for graph in graphs:
        size = len(graph) * (len(graph) - 1)
        if some and (held + size > PAIRS or len(some) >= IMAGES):
            yield some
            some, held = [], 0
        some.append(graph)
        held += size
    if some:
        yield some
