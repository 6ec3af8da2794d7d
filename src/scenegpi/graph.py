"""SceneGraph: the one record that all parts of the project exchange.

An image's objects (boxes, labels, scores, maybe whole label distributions) and the relations between them (subject,
object, predicate, scores, maybe a whole distribution for each pair), with the vocabulary that names
the numbers. Arrays inside, checked once at construction, read-only afterwards.

The score of a triplet is the product of its parts, P(subject) P(object) P(predicate); a score that is not given is 1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from scenegpi.checks import (
    Attributes,
    attribute_rows,
    box_array,
    check_range,
    file_name,
    identifier,
    image_side,
    integer_array,
    label_numbers,
    real_array,
    relation_numbers,
)
from scenegpi.errors import GraphError
from scenegpi.vocabulary import Vocabulary, spoken

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyarrow
    from torch_geometric.data import HeteroData

    from scenegpi.graph_text import Style


class Triplet(NamedTuple):
    """One relation in words, with the indices of its two objects."""

    subject: str
    predicate: str
    object: str
    score: float
    subject_index: int
    object_index: int

    def __str__(self) -> str:
        return f"{spoken(self.subject)} - {self.predicate} - {spoken(self.object)} ({self.score:.3f})"


class SceneObject(NamedTuple):
    """One object in words, with its box (x1, y1, x2, y2)."""

    label: str
    box: tuple[float, float, float, float]
    score: float

    def __str__(self) -> str:
        return f"{spoken(self.label)} ({self.score:.3f})"


class SceneGraph:
    """Objects and relations of one image.

    As in networkx, `len(graph)` counts the objects and iteration goes over them (`graph.objects`);
    `graph.triplets()` are the relations in words, best first.

    Args:
        boxes: (N, 4) x1, y1, x2, y2 in pixels, x1 <= x2 and y1 <= y2; may reach outside the image.
        labels: (N,) indices into `vocabulary.objects`, or the names themselves.
        vocabulary: the names.
        relations: (R, 3) rows of subject, object (indices of boxes) and predicate (index into
            `vocabulary.predicates`, or its name). Duplicate rows are kept; a pair may have several predicates.
        scores: (N,) P(label) of each box; None means 1.
        label_dist: (N, C) distribution over `vocabulary.objects`.
        relation_scores: (R,) P(predicate) of each relation; None means 1.
        pairs, pair_dist: (E, 2) ordered pairs and (E, 1 + P) their distributions; column 0 is "no relation".
        attributes: for each box names ("red"), or name -> score; kept as ((name, score), ...); no score means 1.
        image_id, file, width, height: the image; each may be None.
        photo: the path of the photo that the graph was read from, for `draw`; not compared, not written to files.
    """

    image_id: int | str | None
    file: str | None
    width: int | None
    height: int | None
    boxes: NDArray[np.float64]
    labels: NDArray[np.int32]
    scores: NDArray[np.floating] | None
    label_dist: NDArray[np.floating] | None
    relations: NDArray[np.int32]
    relation_scores: NDArray[np.floating] | None
    pairs: NDArray[np.int32] | None
    pair_dist: NDArray[np.floating] | None
    attributes: Attributes | None
    vocabulary: Vocabulary
    photo: str | None

    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        boxes: ArrayLike,
        labels: ArrayLike,
        vocabulary: Vocabulary,
        relations: ArrayLike = (),
        *,
        scores: ArrayLike | None = None,
        label_dist: ArrayLike | None = None,
        relation_scores: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        pair_dist: ArrayLike | None = None,
        attributes: Sequence[Any] | None = None,
        image_id: int | str | None = None,
        file: str | None = None,
        width: int | None = None,
        height: int | None = None,
        photo: str | None = None,
    ) -> None:
        if not isinstance(vocabulary, Vocabulary):
            raise GraphError(f"vocabulary: expected a Vocabulary, found {type(vocabulary).__name__}")
        set_ = object.__setattr__
        set_(self, "vocabulary", vocabulary)
        set_(self, "image_id", identifier(image_id))
        set_(self, "file", file_name(file))
        set_(self, "photo", None if photo is None else str(photo))
        set_(self, "width", image_side(width, "width"))
        set_(self, "height", image_side(height, "height"))
        set_(self, "boxes", box_array(boxes))
        n = len(self.boxes)
        set_(self, "labels", integer_array(label_numbers(labels, vocabulary), (n,), "labels"))
        check_range(self.labels, len(vocabulary.objects), "labels")
        set_(self, "scores", real_array(scores, (n,), "scores"))
        set_(self, "label_dist", real_array(label_dist, (n, len(vocabulary.objects)), "label_dist"))
        set_(self, "relations", integer_array(relation_numbers(relations, vocabulary), (-1, 3), "relations"))
        check_range(self.relations[:, :2], n, "relations")
        check_range(self.relations[:, 2], len(vocabulary.predicates), "relations (predicate)")
        set_(self, "relation_scores", real_array(relation_scores, (len(self.relations),), "relation_scores"))
        set_(self, "attributes", attribute_rows(attributes, n))
        if (pairs is None) != (pair_dist is None):
            raise GraphError("pairs: give both pairs and pair_dist, or neither")
        set_(self, "pairs", None if pairs is None else integer_array(pairs, (-1, 2), "pairs"))
        if self.pairs is not None:
            check_range(self.pairs, n, "pairs")
            shape = (len(self.pairs), 1 + len(vocabulary.predicates))
            set_(self, "pair_dist", real_array(pair_dist, shape, "pair_dist"))
        else:
            set_(self, "pair_dist", None)

    @classmethod
    def from_detections(
        cls,
        objects: Any,
        names: Mapping[int, str] | Sequence[str] | None = None,
        *,
        labels: Sequence[str] | None = None,
        width: int | None = None,
        height: int | None = None,
        image_id: int | str | None = None,
        file: str | None = None,
    ) -> SceneGraph:
        """The boxes of one image from any detector: arguments as of `data.detector_results.graph_of`."""
        from scenegpi.data.detector_results import graph_of

        return graph_of(objects, names, labels=labels, width=width, height=height, image_id=image_id, file=file)

    @classmethod
    def trusted(cls, **fields: Any) -> SceneGraph:
        """A graph from fields that are already checked: exact dtypes, read-only arrays. For readers of whole files."""
        graph = object.__new__(cls)
        for name in cls.__slots__:
            object.__setattr__(graph, name, fields.get(name))
        return graph

    def __setattr__(self, key: str, value: Any) -> None:
        raise AttributeError(f"SceneGraph is immutable: cannot set {key!r} (use replace)")

    def __delattr__(self, key: str) -> None:
        raise AttributeError(f"SceneGraph is immutable: cannot delete {key!r}")

    def __len__(self) -> int:
        """Number of objects."""
        return len(self.boxes)

    def __iter__(self) -> Iterator[SceneObject]:
        """The objects in their order, as `graph.objects`."""
        return iter(self.objects)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SceneGraph):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self.__slots__ if name != "photo")

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        size = "" if self.width is None else f"{self.width}x{self.height}, "
        words = [f"{spoken(t.subject)} {t.predicate} {spoken(t.object)}" for t in self.triplets(top=3)]
        more = ", ..." if len(self.relations) > 3 else ""
        shown = f" ({'; '.join(words)}{more})" if words else ""
        return f"SceneGraph({self.key!r}, {size}{len(self)} boxes, {len(self.relations)} relations{shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, ({name: getattr(self, name) for name in self.__slots__},)

    @property
    def key(self) -> int | str | None:
        """What the image is called: its id, or else its file; None without both."""
        return (self.file or None) if self.image_id is None else self.image_id

    @property
    def names(self) -> list[str]:
        """The label of each box, in words."""
        return [self.vocabulary.objects[i] for i in self.labels.tolist()]

    @property
    def objects(self) -> list[SceneObject]:
        """The objects in words, in the order of the boxes; a score that is not given is 1."""
        scores = [1.0] * len(self) if self.scores is None else self.scores.tolist()
        rows = zip(self.names, self.boxes.tolist(), scores, strict=True)
        return [SceneObject(name, tuple(box), score) for name, box, score in rows]

    def triplet_scores(self) -> NDArray[np.float64]:
        """(R,) P(subject) P(object) P(predicate) of each relation."""
        score = np.ones(len(self.relations)) if self.relation_scores is None else np.float64(self.relation_scores)
        if self.scores is not None:
            score = score * self.scores[self.relations[:, 0]] * self.scores[self.relations[:, 1]]
        return np.asarray(score)

    def triplets(self, top: int | None = None) -> list[Triplet]:
        """The relations in words, best first; equal scores stay in their order in the graph."""
        scores = self.triplet_scores()
        order = np.argsort(-scores, kind="stable")[: None if top is None else max(top, 0)]
        objects, predicates = self.vocabulary.objects, self.vocabulary.predicates
        labels = self.labels
        return [
            Triplet(objects[labels[s]], predicates[p], objects[labels[o]], score, s, o)
            for (s, o, p), score in zip(self.relations[order].tolist(), scores[order].tolist(), strict=True)
        ]

    def replace(self, **changes: Any) -> SceneGraph:
        """A new graph with these fields changed, checked again."""
        return SceneGraph(**self._changed(changes))

    def with_fields(self, **changes: Any) -> SceneGraph:
        """As `replace`, but unchecked: arrays must have the record's dtypes; they become read-only, uncopied."""
        for value in changes.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        return SceneGraph.trusted(**self._changed(changes))

    def _changed(self, changes: dict[str, Any]) -> dict[str, Any]:
        unknown = changes.keys() - self.__slots__
        if unknown:
            raise TypeError(f"SceneGraph has no field {min(unknown)!r}")
        return {name: getattr(self, name) for name in self.__slots__} | changes

    def subset(self, index: ArrayLike) -> SceneGraph:
        """The boxes at `index` (unique indices, or a boolean mask), in that order, with the relations between them."""
        chosen = np.asarray(index)
        if chosen.dtype == bool:
            if chosen.shape != (len(self),):
                raise GraphError(f"subset: mask of shape {chosen.shape} for {len(self)} boxes")
            chosen = np.flatnonzero(chosen)
        chosen = integer_array(chosen, (-1,), "subset")
        check_range(chosen, len(self), "subset")
        place = np.full(len(self), -1, dtype=np.int32)
        place[chosen] = np.arange(len(chosen), dtype=np.int32)
        if (place >= 0).sum() != len(chosen):
            raise GraphError("subset: an index is duplicated")
        ends = place[self.relations[:, :2]]
        kept = (ends >= 0).all(axis=1)
        changes: dict[str, Any] = {"relations": np.column_stack([ends[kept], self.relations[kept, 2]])}
        for rows, names in ((chosen, ("boxes", "labels", "scores", "label_dist")), (kept, ("relation_scores",))):
            changes |= {name: getattr(self, name)[rows] for name in names if getattr(self, name) is not None}
        if self.attributes is not None:
            changes["attributes"] = [self.attributes[i] for i in chosen.tolist()]
        if self.pairs is not None and self.pair_dist is not None:
            ends = place[self.pairs]
            kept = (ends >= 0).all(axis=1)
            changes |= {"pairs": ends[kept], "pair_dist": self.pair_dist[kept]}
        return self.replace(**changes)

    def permute(self, order: ArrayLike) -> SceneGraph:
        """The same graph with its boxes listed in another order: new box i is old box `order[i]`."""
        order = np.asarray(order)
        if order.shape != (len(self),):
            raise GraphError(f"permute: {order.size} indices for {len(self)} boxes")
        return self.subset(order)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values in the shape of the JSON form (docs/formats.md), vocabulary included."""
        from scenegpi.graph_json import to_dict

        return to_dict(self)

    @classmethod
    def from_dict(cls, data: Any, vocabulary: Vocabulary | None = None) -> SceneGraph:
        """Inverse of `to_dict`. `vocabulary` is used where the data has none of its own."""
        from scenegpi.graph_json import from_dict

        return from_dict(data, vocabulary)

    def to_json(self) -> str:
        """One line of JSON that `from_json` reads back without loss."""
        return json.dumps(self.to_dict(), ensure_ascii=False, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes, vocabulary: Vocabulary | None = None) -> SceneGraph:
        """Inverse of `to_json`; GraphError that names the field on anything else."""
        from scenegpi.files import parse_json

        return cls.from_dict(parse_json(text), vocabulary)

    def draw(self, target: str | Path, photo: str | Path | bytes | None = None, top: int = 20) -> Path:
        """Writes a picture (.png or .svg): the boxes on the photo, and the graph beside it.

        The default photo is the one that the graph was read from; without any, the canvas is empty.
        """
        from scenegpi.viz.picture import draw

        return draw(self, target, photo, top)

    def _repr_png_(self) -> bytes | None:
        """The picture that notebooks show; None, so that they show the text, where it can't be drawn."""
        try:
            from scenegpi.viz.picture import picture

            return picture(self).png()
        except Exception:  # showing a value must never fail
            return None

    def _repr_html_(self) -> str | None:
        """HTML that notebooks prefer: boxes with their relations on hover; None where it can't be made."""
        try:
            from scenegpi.viz.notebook import notebook_html

            return notebook_html(self)
        except Exception:  # as above
            return None

    def to_text(self, style: Style = "sentences", limit: int = 2000) -> str:
        """In words: "sentences", "triples" or "json", at most `limit` characters, the most informative first."""
        from scenegpi.graph_text import to_text

        return to_text(self, style, limit)

    def to_df(self, table: Literal["relations", "objects"] = "relations") -> pandas.DataFrame:
        """A pandas DataFrame of the relations, best first, or of the objects."""
        from scenegpi.data.export.libraries import to_df

        return to_df(self, table)

    def to_arrow(self, table: Literal["relations", "objects"] = "relations") -> pyarrow.Table:
        """An Arrow table of the relations, best first, or of the objects."""
        from scenegpi.data.export.libraries import to_arrow

        return to_arrow(self, table)

    def to_hetero_data(self) -> HeteroData:
        """PyG's HeteroData: objects with boxes and labels, an edge type for each predicate."""
        from scenegpi.data.export.libraries import to_hetero_data

        return to_hetero_data(self)

    def to_networkx(self) -> networkx.MultiDiGraph:
        """Nodes are box indices (label, box, score), edges the relations (predicate, score)."""
        from scenegpi.data.export.libraries import to_networkx

        return to_networkx(self)


def _rebuild(fields: dict[str, Any]) -> SceneGraph:
    return SceneGraph.trusted().with_fields(**fields)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.array_equal(a, b)  # by value: single precision equals the same numbers in double
    return type(a) is type(b) and bool(a == b)


__all__ = ["GraphError", "SceneGraph", "SceneObject", "Triplet", "Vocabulary"]
