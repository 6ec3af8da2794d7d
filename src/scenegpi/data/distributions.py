"""Label and pair distributions of any baseline: one npz file for a data set, flat over images.

    format      ()                  1
    image_ids   (G,)                whole numbers or strings, each once; the order is free
    objects     (C,)                names of the labels, in the order of the columns
    predicates  (P,)                names of the predicates
    box_ptr     (G + 1,)            image g owns rows box_ptr[g]:box_ptr[g+1] of label_dist
    label_dist  (B, C)              P(label) of each box, in the order of the data set's boxes
    pair_ptr    (G + 1,)            image g owns rows pair_ptr[g]:pair_ptr[g+1] of pairs and pair_dist
    pairs       (E, 2)              subject, object: different boxes, counted from 0 within the image, each pair once
    pair_dist   (E, 1 + P)          P(no relation), then P(predicate); rows sum to 1

`label_dist`, or `pair_ptr` with `pairs` and `pair_dist`, may be absent. Distributions are float16, float32 or float64;
rows must sum to 1 within 1%. Half precision is read as single. Nothing in the file is trusted: no pickles, sizes are
checked before anything is loaded, and every offset and index before use.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from scenegpi.data.dataset import Dataset, Source
from scenegpi.data.errors import DataError
from scenegpi.data.files import check_file, reason, whole_file
from scenegpi.graph import GraphError, SceneGraph
from scenegpi.vocabulary import Vocabulary

FREE_BYTES = 1 << 28
MAX_RATIO = 20
"""Arrays may take FREE_BYTES in memory, or MAX_RATIO times the size of their file, whichever is more."""

_DIMENSIONS = {
    "format": 0,
    "image_ids": 1,
    "objects": 1,
    "predicates": 1,
    "box_ptr": 1,
    "label_dist": 2,
    "pair_ptr": 1,
    "pairs": 2,
    "pair_dist": 2,
}
_KINDS = {"image_ids": "iuU", "objects": "U", "predicates": "U", "label_dist": "f", "pair_dist": "f"}


@dataclass(frozen=True, eq=False)
class Distributions:
    """The file, checked: `number` says which image an id is; the arrays are as in the module's table."""

    path: Path
    vocabulary: Vocabulary
    number: dict[int | str, int]
    box_ptr: NDArray[np.int64]
    label_dist: NDArray[np.floating] | None
    pair_ptr: NDArray[np.int64] | None
    pairs: NDArray[np.int32] | None
    pair_dist: NDArray[np.floating] | None

    def __len__(self) -> int:
        return len(self.number)

    def attach_to(self, graph: SceneGraph) -> SceneGraph:
        """The graph with `label_dist`, `pairs` and `pair_dist` of its image; its labels stay what they are."""
        key = image_key(graph)
        if key is None or key not in self.number:
            raise DataError(self.path, f"no distributions for image {key!r}")
        g = self.number[key]
        a, b = self.box_ptr.item(g), self.box_ptr.item(g + 1)
        if b - a != len(graph):
            raise DataError(self.path, f"image {key!r}: {b - a} boxes, the data set has {len(graph)}")
        changes: dict[str, Any] = {}
        if self.label_dist is not None and b > a:
            changes["label_dist"] = self.label_dist[a:b]
        if self.pair_ptr is not None and self.pairs is not None and self.pair_dist is not None:
            c, d = self.pair_ptr.item(g), self.pair_ptr.item(g + 1)
            changes |= {"pairs": self.pairs[c:d], "pair_dist": self.pair_dist[c:d]}
        return SceneGraph.trusted(**{name: getattr(graph, name) for name in graph.__slots__} | changes)


class _Attached:
    """A source whose graphs carry distributions."""

    def __init__(self, source: Source, distributions: Distributions) -> None:
        self.source, self.distributions = source, distributions

    @property
    def vocabulary(self) -> Vocabulary:
        return self.source.vocabulary

    def __len__(self) -> int:
        return len(self.source)

    def graph(self, i: int) -> SceneGraph:
        return self.distributions.attach_to(self.source.graph(i))

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.source.counts()

    def split_codes(self) -> NDArray[np.int8]:
        return self.source.split_codes()


def attach_distributions(dataset: Dataset, path: str | Path) -> Dataset:
    """The data set with the distributions of a file attached to its graphs.

    Every image of the data set (the file may hold more) must be in the file, with as many boxes; DataError if not.
    """
    file = read_distributions(path)
    if file.vocabulary != dataset.vocabulary:
        raise DataError(file.path, f"objects, predicates: not the names of {dataset.path}, or in another order")
    boxes, _ = dataset.counts()
    for n, row in zip(boxes.tolist(), dataset.rows.tolist(), strict=True):
        key = image_key(dataset.source.graph(row))
        if key is None or key not in file.number:
            raise DataError(file.path, f"no distributions for image {key!r} of {dataset.path}")
        found = int(file.box_ptr[file.number[key] + 1] - file.box_ptr[file.number[key]])
        if found != n:
            raise DataError(file.path, f"image {key!r}: {found} boxes, the data set has {n}")
    return Dataset(
        _Attached(dataset.source, file), dataset.path, dataset.format, dataset.report, dataset.images, dataset.rows
    )


def image_key(graph: SceneGraph) -> int | str | None:
    """What a file calls the image: its id, or else its file name."""
    return graph.file if graph.image_id is None else graph.image_id


def read_distributions(path: str | Path) -> Distributions:
    """The whole file; DataError with one line on anything that is not one."""
    path = Path(path)
    arrays = _load(path)
    try:
        return _check(path, arrays)
    except (GraphError, ValueError) as error:
        raise DataError(path, str(error)) from None


def write_distributions(path: str | Path, graphs: Iterable[SceneGraph], dtype: DTypeLike = np.float32) -> int:
    """Writes what the graphs carry, all of them label_dist, or pairs with pair_dist, or both; returns how many."""
    keys: list[int | str] = []
    parts: dict[str, list[NDArray[Any]]] = {"label_dist": [], "pairs": [], "pair_dist": []}
    boxes, edges = [0], [0]
    vocabulary: Vocabulary | None = None
    path = Path(path)
    for graph in graphs:
        vocabulary = vocabulary or graph.vocabulary
        key = image_key(graph)
        if key is None:
            raise DataError(path, f"the image at place {len(keys)} has neither an id nor a file name")
        keys.append(key)
        boxes.append(boxes[-1] + len(graph))
        if graph.label_dist is not None:
            parts["label_dist"].append(graph.label_dist.astype(dtype))
        if graph.pairs is not None and graph.pair_dist is not None:
            parts["pairs"].append(graph.pairs)
            parts["pair_dist"].append(graph.pair_dist.astype(dtype))
        edges.append(edges[-1] + (0 if graph.pairs is None else len(graph.pairs)))
    if vocabulary is None:
        raise DataError(path, "no graph to write")
    ids = keys if all(isinstance(key, int) for key in keys) else [str(key) for key in keys]
    arrays: dict[str, Any] = {"format": np.int64(1), "image_ids": np.array(ids), "box_ptr": np.array(boxes)}
    arrays |= {"objects": np.array(vocabulary.objects), "predicates": np.array(vocabulary.predicates, dtype=np.str_)}
    if parts["label_dist"]:
        arrays["label_dist"] = np.concatenate(parts["label_dist"])
    if parts["pairs"]:
        arrays |= {name: np.concatenate(parts[name]) for name in ("pairs", "pair_dist")}
        arrays["pair_ptr"] = np.array(edges)
    try:
        _check(path, arrays)
    except (GraphError, ValueError) as error:
        raise DataError(path, str(error)) from None
    with whole_file(path) as part, part.open("wb") as handle:
        np.savez(handle, **arrays)
    return len(keys)
