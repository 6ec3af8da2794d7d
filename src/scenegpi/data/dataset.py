"""Dataset: a sequence of scene graphs over any source, with the usual filters as named options."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, SupportsIndex, cast, overload

import numpy as np
from numpy.typing import NDArray

from scenegpi.data.graphs import SPLITS, Graphs
from scenegpi.data.images import ImageFolders
from scenegpi.data.parquet import ParquetRows
from scenegpi.errors import DataError, GraphError, Report, naming
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

Duplicates = Literal["keep", "drop", "sample"]


class Source(Protocol):
    """Where graphs come from: memory, or a file of JSON lines."""

    @property
    def vocabulary(self) -> Vocabulary: ...
    def __len__(self) -> int: ...
    def graph(self, i: int) -> SceneGraph: ...
    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
    def split_codes(self) -> NDArray[np.int8]: ...


class Dataset(Sequence[SceneGraph]):
    """Scene graphs of a file or folder: lazy, indexable, sliceable, picklable.

    Made by `open_dataset`. `report` holds what was wrong with the file; invalid images are left out.

    Args:
        source: where the graphs come from.
        path, format: the file or folder, and one of `open.FORMATS`.
        report: the defects found on opening.
        images: the folders of the photos.
        rows: which of the source's images, in which order; None means all.
        files: absolute paths of all files that the data set is read from.
    """

    def __init__(
        self,
        source: Source,
        path: Path,
        format: str,
        report: Report,
        images: ImageFolders | None = None,
        rows: NDArray[np.int64] | None = None,
        files: Iterable[str] = (),
    ) -> None:
        self.source = source
        self.path = path
        self.format = format
        self.report = report
        self.images = images or ImageFolders()
        self.files = tuple(files)
        self.rows = np.arange(len(source), dtype=np.int64) if rows is None else rows
        self._codes: NDArray[np.int8] | None = None
        self._sample_seed: int | None = None
        self.sampling = False
        self.epoch = 0

    @property
    def vocabulary(self) -> Vocabulary:
        """The names of the label and predicate numbers."""
        return self.source.vocabulary

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, i: int) -> SceneGraph: ...
    @overload
    def __getitem__(self, i: slice | Sequence[int] | NDArray[Any]) -> Dataset: ...
    def __getitem__(self, i: int | slice | Sequence[int] | NDArray[Any]) -> SceneGraph | Dataset:
        if isinstance(i, slice | list | tuple | np.ndarray):
            return self._with(rows=self.rows[i if isinstance(i, slice) else np.asarray(i)])
        at = operator.index(cast(SupportsIndex, i))
        graph = self._whole(at)
        return self._one_a_pair(graph, at) if self.sampling else graph

    def __iter__(self) -> Iterator[SceneGraph]:
        if self.sampling:
            return (self[i] for i in range(len(self)))
        return map(self.source.graph, self.rows.tolist())

    def __repr__(self) -> str:
        return f"Dataset({str(self.path)!r}, {self.format}, {len(self):,} images)"

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(N,) boxes and (N,) relations of each image."""
        boxes, relations = self.source.counts()
        if self.sampling:  # one relation per pair, whichever is drawn
            drawn = [len({(s, o) for s, o, _ in self._whole(i).relations.tolist()}) for i in range(len(self))]
            return boxes[self.rows], np.array(drawn, dtype=np.int64)
        return boxes[self.rows], relations[self.rows]

    def split_codes(self) -> NDArray[np.int8]:
        """(N,) 0 train, 1 val, 2 test, -1 unknown."""
        codes = self.source.split_codes() if self._codes is None else self._codes
        return codes[self.rows]

    def split(self, name: str, validation: int = 0, seed: int | None = None) -> Dataset:
        """The images of one split: "train", "val" or "test".

        `validation` takes that many images with a box and a relation away from "train" and makes them "val": the
        first ones (the common rule, with 5,000), or with a `seed` random ones.
        """
        if name not in SPLITS:
            raise DataError(self.path, f"split {name!r}: expected one of {', '.join(SPLITS)}")
        data = self.with_validation(validation, seed) if name != "test" else self
        chosen = np.flatnonzero(data.split_codes() == SPLITS[name])
        if not len(chosen):
            hint = " (say how many training images to set aside: validation=N)" if name == "val" else ""
            raise DataError(self.path, f"split {name!r}: no images{hint}")
        return data._with(rows=data.rows[chosen])

    def with_validation(self, validation: int, seed: int | None = None) -> Dataset:
        """All images, with a given number of "train" made "val" (see `split`)."""
        if validation < 0:
            raise DataError(self.path, f"validation {validation}: expected 0 or more images")
        if not validation:
            return self
        codes = self.split_codes()
        boxes, relations = self.counts()
        candidates = np.flatnonzero((codes == SPLITS["train"]) & (boxes > 0) & (relations > 0))
        if seed is not None:
            candidates = np.random.default_rng(seed).permutation(candidates)
        if validation >= len(candidates):
            raise DataError(self.path, f"validation {validation}: there are only {len(candidates)} training images")
        moved = (self.source.split_codes() if self._codes is None else self._codes).copy()
        moved[self.rows[candidates[:validation]]] = SPLITS["val"]
        return self._with(_codes=moved)

    def drop_empty(self) -> Dataset:
        """Without the images that have no box or no relation."""
        boxes, relations = self.counts()
        return self._with(rows=self.rows[(boxes > 0) & (relations > 0)])

    def spread(self, most: int) -> Dataset:
        """At most this many images, spread evenly over all; 0 for all."""
        return self[np.arange(most) * len(self) // most] if 0 < most < len(self) else self

    def only_overlapping(self) -> Dataset:
        """Only relations whose two boxes overlap, and only images that have such a relation."""
        return self._filtered(_overlapping).drop_empty()

    def duplicates(self, rule: Duplicates, seed: int | None = None) -> Dataset:
        """What happens to repeated relations: "keep" all rows (evaluation), "drop" exact repeats, or "sample".

        "sample" is the common rule for training: a pair with several predicates gives one of them, drawn afresh each
        time, or with a `seed` by (seed, `epoch`, image), so that worker processes agree.
        """
        if rule == "keep":
            return self
        if rule == "drop":
            return self._filtered(_first_of_duplicates)
        if rule != "sample":
            raise DataError(self.path, f"duplicates {rule!r}: expected keep, drop or sample")
        other = self._with()
        other.sampling, other._sample_seed = True, seed
        return other

    def image_path(self, i: int) -> Path | None:
        """The photo of image i, or None if it is not found."""
        return self.photo_path(self._whole(i))

    def photo_path(self, graph: SceneGraph) -> Path | None:
        """The photo of a graph of this data set, or None if it is not found."""
        return self.images.photo(graph)

    def photo_bytes(self, i: int) -> bytes | None:
        """The content of image i's photo, where the data set holds photos."""
        return self.source.photo(self.rows.item(i)) if isinstance(self.source, ParquetRows) else None

    @property
    def boxed(self) -> bool:
        """Whether there are boxes, or only photos."""
        return not isinstance(self.source, ParquetRows) or self.source.boxed

    def find(self, image_id: int | str) -> int:
        """The position of the image with this id (or file name); DataError if no image has it."""
        near = None
        for i in range(len(self)):
            graph = self._whole(i)
            if graph.image_id == image_id:
                return i
            if near is None and str(image_id) in (str(graph.image_id), graph.file):
                near = i
        if near is None:
            raise DataError(self.path, f"no image with id {str(image_id)!r}")
        return near

    def _whole(self, i: int) -> SceneGraph:
        """Image i with all its relations."""
        return self.source.graph(self.rows.item(i))

    def _filtered(self, keep: Callable[[SceneGraph], NDArray[np.bool_]]) -> Dataset:
        """With only the relations of each image that `keep` selects, (R,)."""
        found = Graphs(self.vocabulary, self.report)
        for i, split in enumerate(self.source.split_codes().tolist()):
            graph = self.source.graph(i)
            with naming(self.path, GraphError):
                found.append(_with_relations(graph, keep(graph)), split)
        return self._with(source=found)

    def _with(self, **changes: Any) -> Dataset:
        other = object.__new__(Dataset)
        other.__dict__.update(self.__dict__)
        other.__dict__.update(changes)
        return other

    def _one_a_pair(self, graph: SceneGraph, i: int) -> SceneGraph:
        seed = None if self._sample_seed is None else [self._sample_seed, self.epoch, self.rows.item(i)]
        shuffled = np.random.default_rng(seed).permutation(len(graph.relations))
        _, first = np.unique(graph.relations[shuffled, :2], axis=0, return_index=True)
        return _with_relations(graph, np.sort(shuffled[first]))


def _with_relations(graph: SceneGraph, kept: NDArray[Any]) -> SceneGraph:
    """The graph with these relations only, by index or by mask."""
    relations = graph.relations[kept]
    scores = graph.relation_scores[kept] if graph.relation_scores is not None and len(relations) else None
    return graph.with_fields(relations=relations, relation_scores=scores)


def _overlapping(graph: SceneGraph) -> NDArray[np.bool_]:
    """(R,) does the subject's box overlap the object's: IoU > 0 with pixels counted inclusively, as in metrics."""
    subject, object_ = (graph.boxes[graph.relations[:, end]] for end in (0, 1))
    low, high = np.maximum(subject[:, :2], object_[:, :2]), np.minimum(subject[:, 2:], object_[:, 2:])
    return np.asarray((high - low + 1 > 0).all(axis=1))


def _first_of_duplicates(graph: SceneGraph) -> NDArray[np.bool_]:
    """(R,) is this the first row with this subject, object and predicate."""
    first = np.unique(graph.relations, axis=0, return_index=True)[1]
    return np.isin(np.arange(len(graph.relations)), first)
