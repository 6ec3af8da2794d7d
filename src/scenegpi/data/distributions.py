"""Label and pair distributions of any baseline: one npz file for a data set, flat over images.

docs/formats.md lists the arrays. Half precision is read as single. Nothing in the file is trusted: no pickles, sizes
are checked before anything is loaded, and every offset and index before use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from scenegpi.checks import frozen, plain_floats
from scenegpi.data.dataset import Dataset, Source
from scenegpi.data.limits import check_crowd, check_images, check_names
from scenegpi.errors import DataError, GraphError, naming
from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph
from scenegpi.npz import check_local, load_npz, offsets
from scenegpi.vocabulary import Vocabulary

_REQUIRED = {"format": (0, "iu"), "image_ids": (1, "iuU"), "objects": (1, "U"), "predicates": (1, "U")}
_REQUIRED |= {"box_ptr": (1, "iu")}
_PAIRS = {"pair_ptr": (1, "iu"), "pairs": (2, "iu"), "pair_dist": (2, "f")}
_ARRAYS = _REQUIRED | _PAIRS | {"label_dist": (2, "f")}
"""Number of dimensions of each array, and the kinds of its numbers."""


@dataclass(frozen=True, eq=False)
class Distributions:
    """The file, checked: `number` maps an id to its image's number; the arrays are as in docs/formats.md."""

    path: Path
    vocabulary: Vocabulary
    number: dict[str, int]
    box_ptr: NDArray[np.int64]
    label_dist: NDArray[np.floating] | None
    pair_ptr: NDArray[np.int64] | None = None
    pairs: NDArray[np.int32] | None = None
    pair_dist: NDArray[np.floating] | None = None

    def __len__(self) -> int:
        return len(self.number)

    def rows_of(self, graph: SceneGraph) -> tuple[int, int, int]:
        """Number of the image, first and last row of its boxes; DataError if it is missing, or has other boxes."""
        key = image_key(graph)
        if key is None or key not in self.number:
            raise DataError(self.path, f"no distributions for image {key!r}")
        a, b = self.box_ptr[self.number[key] :][:2].tolist()
        if b - a != len(graph):
            raise DataError(self.path, f"image {key!r}: {b - a} boxes, the data set has {len(graph)}")
        return self.number[key], a, b

    def attach_to(self, graph: SceneGraph) -> SceneGraph:
        """The graph with `label_dist`, `pairs` and `pair_dist` of its image; its labels are unchanged."""
        g, a, b = self.rows_of(graph)
        changes: dict[str, Any] = {}
        if self.label_dist is not None and b > a:
            changes["label_dist"] = self.label_dist[a:b]
        if self.pair_ptr is not None and self.pairs is not None and self.pair_dist is not None:
            c, d = self.pair_ptr.item(g), self.pair_ptr.item(g + 1)
            changes |= {"pairs": self.pairs[c:d], "pair_dist": self.pair_dist[c:d]}
        return graph.with_fields(**changes)


class _Attached:
    """A source whose graphs carry distributions."""

    def __init__(self, source: Source, distributions: Distributions) -> None:
        self.source, self.distributions = source, distributions
        self.vocabulary, self.counts, self.split_codes = source.vocabulary, source.counts, source.split_codes

    def __len__(self) -> int:
        return len(self.source)

    def graph(self, i: int) -> SceneGraph:
        return self.distributions.attach_to(self.source.graph(i))


def attach_distributions(dataset: Dataset, path: str | Path) -> Dataset:
    """The data set with the distributions of a file attached to its graphs.

    Every image of the data set (the file may hold more) must be in the file, with as many boxes; DataError if not.
    """
    file = read_distributions(path)
    if file.vocabulary != dataset.vocabulary:
        raise DataError(
            file.path, f"objects, predicates: differ from the names of {dataset.path}, or are in another order"
        )
    for row in dataset.rows.tolist():
        file.rows_of(dataset.source.graph(row))
    return Dataset(
        _Attached(dataset.source, file), dataset.path, dataset.format, dataset.report, dataset.images, dataset.rows
    )


def image_key(graph: SceneGraph) -> str | None:
    """The key of an image in a file: its id, or else its file name; 7 and "7" are the same."""
    return graph.file if graph.image_id is None else str(graph.image_id)


def read_distributions(path: str | Path) -> Distributions:
    """Reads and checks the whole file; DataError on any defect."""
    path = Path(path)
    arrays = load_npz(path, _ARRAYS)
    check_images(path, np.size(arrays.get("image_ids", ())), path.stat().st_size, each=64)
    for name in ("objects", "predicates"):
        check_names(path, np.size(arrays.get(name, ())), name)
    with naming(path, ValueError):
        return _checked(path, arrays)


def write_distributions(path: str | Path, graphs: Iterable[SceneGraph], dtype: DTypeLike = np.float32) -> int:
    """Writes the graphs' distributions (label_dist, pair_dist or both; the same for all); returns how many graphs."""
    path, found = Path(path), list(graphs)
    if not found:
        raise DataError(path, "no graphs to write")
    keys, words = [image_key(graph) for graph in found], found[0].vocabulary
    if None in keys:
        raise DataError(path, f"image {keys.index(None)}, counted from 0, has neither an id nor a file name")
    arrays: dict[str, Any] = {"format": np.int64(1), "image_ids": np.array(keys)}
    arrays |= {"objects": np.array(words.objects), "predicates": np.array(words.predicates, dtype=np.str_)}
    arrays["box_ptr"] = np.cumsum([0, *map(len, found)])
    for name, kind in (("label_dist", dtype), ("pairs", np.int32), ("pair_dist", dtype)):
        rows = [getattr(graph, name).astype(kind) for graph in found if getattr(graph, name) is not None]
        if rows:
            arrays[name] = np.concatenate(rows)
    if "pairs" in arrays:
        arrays["pair_ptr"] = np.cumsum([0, *(0 if graph.pairs is None else len(graph.pairs) for graph in found)])
    with naming(path, ValueError):
        _checked(path, arrays)
    with whole_file(path) as part, part.open("wb") as handle:
        np.savez(handle, **arrays)
    return len(keys)


def _checked(path: Path, arrays: dict[str, NDArray[Any]]) -> Distributions:
    for name, array in arrays.items():
        dimensions, kinds = _ARRAYS[name]
        if np.ndim(array) != dimensions or array.dtype.kind not in kinds:
            raise GraphError(f"{name}: {array.dtype} of shape {np.shape(array)} is unexpected")
    for name in _REQUIRED:
        if name not in arrays:
            raise GraphError(f"{name}: missing")
    if int(arrays["format"]) != 1:
        raise GraphError(f"format: {int(arrays['format'])} is not supported, only 1")
    if len(_PAIRS.keys() & arrays) not in (0, 3):
        raise GraphError("pair_ptr, pairs, pair_dist: give all of them or none")
    vocabulary = Vocabulary(arrays["objects"].tolist(), arrays["predicates"].tolist())
    number = {str(key): g for g, key in enumerate(arrays["image_ids"].tolist())}
    if len(number) != len(arrays["image_ids"]):
        raise GraphError("image_ids: one is duplicated")
    label_dist = arrays.get("label_dist")
    box_ptr = offsets(arrays["box_ptr"], "box_ptr", len(number), None if label_dist is None else len(label_dist))
    check_crowd(int(np.diff(box_ptr).max(initial=0)))
    if label_dist is not None:
        label_dist = _distributions(label_dist, "label_dist", len(vocabulary.objects))
    found = Distributions(path, vocabulary, number, box_ptr, label_dist)
    if "pairs" not in arrays:
        return found
    pair_ptr = offsets(arrays["pair_ptr"], "pair_ptr", len(number), len(arrays["pairs"]))
    pair_dist = _distributions(arrays["pair_dist"], "pair_dist", 1 + len(vocabulary.predicates))
    if len(pair_dist) != len(arrays["pairs"]):
        raise GraphError(f"pair_dist: {len(pair_dist)} rows for {len(arrays['pairs'])} pairs")
    pairs = _pairs(arrays["pairs"], pair_ptr, box_ptr)
    return replace(found, pair_ptr=pair_ptr, pairs=pairs, pair_dist=pair_dist)


def _distributions(array: NDArray[Any], name: str, width: int) -> NDArray[np.floating]:
    if array.shape[1] != width:
        raise GraphError(f"{name}: {array.shape[1]} columns, expected {width} by the names")
    array = plain_floats(array)
    with np.errstate(over="ignore", invalid="ignore"):  # a sum that is not finite is not 1
        total = array.sum(axis=1, dtype=np.float64)
    bad = ~(np.abs(total - 1) < 0.01) | (array < 0).any(axis=1)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise GraphError(f"{name}[{row}]: not a distribution (sums to {total[row]:.4g})")
    return frozen(array)


def _pairs(pairs: NDArray[Any], ptr: NDArray[np.int64], box_ptr: NDArray[np.int64]) -> NDArray[np.int32]:
    if pairs.shape[1] != 2:
        raise GraphError(f"pairs: {pairs.shape[1]} columns, expected subject and object")
    check_local(pairs, ptr, box_ptr, "pairs")
    same = pairs[:, 0] == pairs[:, 1]
    if same.any():
        raise GraphError(f"pairs[{int(same.argmax())}]: the subject is the object")
    image, boxes = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)), np.diff(box_ptr).max(initial=0)
    i, j = pairs.astype(np.int64).T
    if len(np.unique((image * boxes + i) * boxes + j)) != len(pairs):
        raise GraphError("pairs: one is duplicated")
    return frozen(pairs.astype(np.int32))
