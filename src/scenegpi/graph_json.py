"""The JSON form of a scene graph, one object per image (docs/formats.md). Labels and predicates are written as names.

{"scenegpi": 1, "image": {"id", "file", "width", "height"},
 "objects": [{"box": [x1, y1, x2, y2], "label", "score", "distribution", "attributes"}],
 "relations": [{"subject", "predicate", "object", "score", "factors"}],
 "pairs": [{"subject", "object", "distribution"}],
 "vocabulary": {"name", "objects", "predicates"} or a reference to one seen before}

The score of a relation is the product of its factors, P(subject) P(object) P(predicate). Other tools may write
P(predicate) alone as its score, without factors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scenegpi.errors import GraphError
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

VERSION = 1


def to_dict(graph: SceneGraph, vocabulary: bool = True, **more: Any) -> dict[str, Any]:
    """Plain Python values, with those of `more`; the vocabulary is last, and only a reference to it if False."""
    image = {"id": graph.image_id, "file": graph.file, "width": graph.width, "height": graph.height}
    objects: list[dict[str, Any]] = [
        {"box": box, "label": name} for box, name in zip(graph.boxes.tolist(), graph.names, strict=True)
    ]
    _add(objects, "score", graph.scores)
    _add(objects, "distribution", graph.label_dist)
    for row, attributes in zip(objects, graph.attributes or (), strict=False):
        if attributes:
            row["attributes"] = plain_attributes(attributes)
    names = graph.vocabulary.predicates
    relations: list[dict[str, Any]] = [
        {"subject": s, "predicate": names[p], "object": o} for s, o, p in graph.relations.tolist()
    ]
    if graph.relation_scores is not None:
        _add(relations, "score", graph.triplet_scores())
        _add(relations, "factors", factors(graph))
    data: dict[str, Any] = {
        "scenegpi": VERSION,
        "image": {key: value for key, value in image.items() if value is not None},
        "objects": objects,
        "relations": relations,
    }
    if graph.pairs is not None:
        pairs: list[dict[str, Any]] = [{"subject": s, "object": o} for s, o in graph.pairs.tolist()]
        _add(pairs, "distribution", graph.pair_dist)
        data["pairs"] = pairs
    floats = (graph.scores, graph.label_dist, graph.relation_scores, graph.pair_dist)
    single = [a is not None and a.dtype == np.float32 for a in floats]
    if any(single):
        data["float32"] = [name for name, yes in zip(FLOAT_FIELDS, single, strict=True) if yes]
    return data | more | {"vocabulary": graph.vocabulary.to_dict() if vocabulary else graph.vocabulary.reference}


def plain_attributes(attributes: Sequence[tuple[str, float]]) -> list[str] | dict[str, float]:
    """The names, or name -> score where a score is not 1."""
    scored = dict(attributes)
    return list(scored) if all(score == 1 for score in scored.values()) else scored


def factors(graph: SceneGraph) -> NDArray[np.float64]:
    """(R, 3) P(subject), P(object) and P(predicate) of each relation, whose product is its score."""
    scores = np.ones(len(graph)) if graph.scores is None else graph.scores.astype(np.float64)
    own = np.ones(len(graph.relations)) if graph.relation_scores is None else graph.relation_scores
    return np.column_stack([scores[graph.relations[:, :2]], own])


def _predicate_scores(relations: list[dict[str, Any]]) -> list[Any] | None:
    """P(predicate) of each relation: the last of its factors, or the score of a relation without factors."""
    if not any("factors" in row for row in relations):
        return _column(relations, "score", "relations")
    for i, row in enumerate(relations):
        if not isinstance(row.get("factors"), list) or len(row["factors"]) != 3:
            raise GraphError(f"relations[{i}].factors: expected three numbers, as in the other relations")
    return [row["factors"][2] for row in relations]


FLOAT_FIELDS = ("scores", "label_dist", "relation_scores", "pair_dist")


def from_dict(data: Any, vocabulary: Vocabulary | None = None) -> SceneGraph:
    """The graph of a JSON object. Labels may be names or indices; unknown keys are ignored."""
    data = _typed(data, dict, "line")
    version = data.get("scenegpi", VERSION)
    if version != VERSION:
        raise GraphError(f"scenegpi: format version {version!r:.40} is not supported by this reader ({VERSION} is)")
    known = _vocabulary(data.get("vocabulary"), vocabulary)
    image = _typed(data.get("image", {}), dict, "image")
    objects = _rows(data, "objects")
    relations = _rows(data, "relations")
    pairs = _rows(data, "pairs") if "pairs" in data else None
    n = len(objects)
    fields: dict[str, Any] = {
        "boxes": [_get(row, "box", f"objects[{i}]") for i, row in enumerate(objects)],
        "labels": [
            _label(row.get("label"), known.object_index, f"objects[{i}].label") for i, row in enumerate(objects)
        ],
        "relations": [
            (*ends, _label(row.get("predicate"), known.predicate_index, f"relations[{i}].predicate"))
            for i, (row, ends) in enumerate(zip(relations, _ends(relations, n, "relations"), strict=True))
        ],
        "scores": _column(objects, "score", "objects"),
        "label_dist": _column(objects, "distribution", "objects"),
        "attributes": [row.get("attributes", ()) for row in objects],
        "relation_scores": _predicate_scores(relations),
    }
    if pairs is not None:
        fields["pairs"] = list(_ends(pairs, n, "pairs"))
        fields["pair_dist"] = _column(pairs, "distribution", "pairs") if pairs else ()
    elif any("distribution" in row for row in relations):
        fields["pairs"], fields["pair_dist"] = _pairs_of_relations(relations, n)
    for name in _typed(data.get("float32", []), list, "float32"):
        if name in FLOAT_FIELDS and fields.get(name) is not None:
            fields[name] = single(fields[name])
    file = image.get("file")
    if file is not None and not isinstance(file, str):
        raise GraphError("image.file: expected a string")
    sizes = {key: image.get(key) for key in ("width", "height")}
    try:
        return SceneGraph(vocabulary=known, image_id=image.get("id"), file=file, **sizes, **fields)
    except GraphError as error:  # with the file's name for the field
        raise GraphError(re.sub(r"^boxes(\[\d+\])", r"objects\1.box", str(error))) from None


def single(values: Any) -> Any:
    """The values in single precision; unchanged where that is impossible, for SceneGraph to say what is wrong."""
    try:
        with np.errstate(over="ignore"):
            return np.asarray(values, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        return values


def _add(rows: list[dict[str, Any]], key: str, values: Any) -> None:
    if values is not None:
        for row, value in zip(rows, values.tolist(), strict=True):
            row[key] = value


def _typed(value: Any, kind: type, field: str) -> Any:
    if not isinstance(value, kind):
        word = "an object" if kind is dict else "a list"
        raise GraphError(f"{field}: expected {word}, found {type(value).__name__}")
    return value


def _rows(data: dict[str, Any], field: str) -> list[dict[str, Any]]:
    return [_typed(row, dict, f"{field}[{i}]") for i, row in enumerate(_typed(data.get(field, []), list, field))]


def _get(row: dict[str, Any], key: str, field: str) -> Any:
    value = row.get(key)
    if not isinstance(value, list) or len(value) != 4 or not all(_is_number(v) for v in value):
        raise GraphError(f"{field}.{key}: expected four numbers, found {value!r:.60}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _vocabulary(value: Any, given: Vocabulary | None) -> Vocabulary:
    if isinstance(value, dict):
        try:
            return Vocabulary.from_dict(value)
        except ValueError as error:
            raise GraphError(str(error)) from None
    if value is not None and not isinstance(value, str):
        raise GraphError(f"vocabulary: expected an object or a reference, found {type(value).__name__}")
    if given is None:
        raise GraphError(f"vocabulary: {'missing' if value is None else f'{value!r:.60} is not a known reference'}")
    return given


def _label(value: Any, index: Mapping[str, int], field: str) -> int:
    if isinstance(value, str):
        if value not in index:
            raise GraphError(f"{field}: {value!r:.60} is not in the vocabulary")
        return index[value]
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(index):
        return value
    raise GraphError(f"{field}: expected a name or an index of the vocabulary, found {value!r:.60}")


def _ends(rows: list[dict[str, Any]], n: int, field: str) -> Iterator[tuple[int, int]]:
    """Subject and object of each row, indices of one of n objects."""
    for i, row in enumerate(rows):
        for key in ("subject", "object"):
            value = row.get(key)
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < n:
                said = f"expected an index of an object (0..{n - 1}), found {value!r:.60}"
                raise GraphError(f"{field}[{i}].{key}: {said}")
        yield row["subject"], row["object"]


def _column(rows: list[dict[str, Any]], key: str, field: str) -> list[Any] | None:
    values = [row.get(key) for row in rows]
    missing = sum(value is None for value in values)
    if missing == len(values):
        return None
    if missing:
        row = next(i for i, value in enumerate(values) if value is None)
        raise GraphError(f"{field}[{row}].{key}: missing, though others have it")
    for i, value in enumerate(values):
        numbers = value if isinstance(value, list) else [value]
        if not all(_is_number(v) for v in numbers):
            raise GraphError(f"{field}[{i}].{key}: expected numbers")
    return values


def _pairs_of_relations(relations: list[dict[str, Any]], n: int) -> tuple[list[Any], list[Any]]:
    """Relations may carry the distribution of their pair themselves; a pair with several rows gives it once."""
    rows = _column(relations, "distribution", "relations") or []
    seen: dict[tuple[int, int], Any] = {}
    for i, (ends, dist) in enumerate(zip(_ends(relations, n, "relations"), rows, strict=True)):
        if seen.setdefault(ends, dist) != dist:
            raise GraphError(f"relations[{i}].distribution: differs from an earlier one for the same pair")
    return list(seen), list(seen.values())
