"""A scene graph in words, for people and for language models: sentences, triples or short JSON, bounded in length.

The most informative come first: relations are picked one by one, each time the one with the largest score, which is
doubled for every object not named yet and halved for a vague predicate ("on", "has", "near").
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, get_args

from scenegpi.errors import GraphError, printable
from scenegpi.vocabulary import spoken

if TYPE_CHECKING:
    from scenegpi.graph import SceneGraph, Triplet

Style = Literal["sentences", "triples", "json"]
COMMON = frozenset(["on", "has", "in", "of", "with", "near", "at", "and", "to", "for", "from"])
PLACES = frozenset(
    ("on", "in", "of", "with", "near", "at", "to", "for", "from", "above", "across", "against", "along", "behind", "by")
) | {"between", "inside", "over", "under", "beside", "below", "next", "left", "right", "front", "part", "outside"}
MOST = 300
"""Number of relations that are ranked; others are only counted."""


def to_text(graph: SceneGraph, style: Style = "sentences", limit: int = 2000) -> str:
    """At most `limit` characters, the most informative relations first; what is left out is counted."""
    if style not in get_args(Style):
        raise GraphError(f"style: expected one of {', '.join(get_args(Style))}, found {style!r:.40}")
    if limit < 100:
        raise GraphError(f"limit: expected at least 100 characters, found {limit}")
    told = informative(graph)
    if style == "json":
        return _json(graph, told, limit)
    names = object_names(graph)
    if style == "triples":
        lines = [f"{names[t.subject_index]} | {_clean(t.predicate)} | {names[t.object_index]}" for t in told]
        return _within("", lines, "\n", limit, len(graph.relations))
    where = [position(graph, i) for i in range(len(graph))]
    seen: set[int] = set()

    def called(i: int) -> str:
        first = i not in seen
        seen.add(i)
        if not first:
            return f"the {names[i]}"
        rows = graph.attributes[i] if graph.attributes is not None else ()
        described = "".join(f"{_clean(name)} " for name, _ in sorted(rows, key=lambda row: -row[1])[:3])
        return f"the {described}{names[i]}{f' ({where[i]})' if where[i] else ''}"

    sentences = []
    for t in told:
        subject = called(t.subject_index)
        sentences.append(f"{subject[0].upper()}{subject[1:]} {_verb(t.predicate)} {called(t.object_index)}.")
    return _within(_opening(graph), sentences, " ", limit, len(graph.relations))


def informative(graph: SceneGraph) -> list[Triplet]:
    """The relations, the most informative first."""
    left = graph.triplets(top=MOST)
    told: list[Triplet] = []
    seen: set[int] = set()

    def worth(t: Triplet) -> float:
        new = len({t.subject_index, t.object_index} - seen)
        return t.score * 2**new * (0.5 if t.predicate in COMMON else 1.0)

    while left:
        best = max(left, key=worth)
        left.remove(best)
        told.append(best)
        seen |= {best.subject_index, best.object_index}
    return told


def object_names(graph: SceneGraph) -> list[str]:
    """A name for each object; objects of the same name are numbered from 1."""
    names = [_clean(spoken(name)) for name in graph.names]
    total, seen = Counter(names), Counter[str]()
    out = []
    for name in names:
        seen[name] += 1
        out.append(f"{name} {seen[name]}" if total[name] > 1 else name)
    return out


def position(graph: SceneGraph, i: int) -> str:
    """Where the middle of a box is: "top left", "center", "right"; "" where the size of the image is not known."""
    if not graph.width or not graph.height:
        return ""
    x1, y1, x2, y2 = graph.boxes[i].tolist()
    if (x2 - x1) * (y2 - y1) >= 0.6 * graph.width * graph.height:
        return "most of the picture"
    across = ("left", "", "right")[min(max(int(3 * (x1 + x2) / 2 / graph.width), 0), 2)]
    down = ("top", "", "bottom")[min(max(int(3 * (y1 + y2) / 2 / graph.height), 0), 2)]
    return " ".join(part for part in (down, across) if part) or "center"


def _opening(graph: SceneGraph) -> str:
    if not len(graph):
        return "No objects were found."
    counted = Counter(_clean(spoken(name)) for name in graph.names)
    things = [f"{count} {name}" if count > 1 else name for name, count in counted.most_common()]
    return f"Objects: {', '.join(things)}."


def _verb(predicate: str) -> str:
    """A predicate as a verb: "is riding", "is on", "has"."""
    first = predicate.split()[0]
    bare = not (first.endswith(("ing", "ed")) or first in PLACES or predicate.endswith(("made of", "hung on")))
    return _clean(predicate) if bare else f"is {_clean(predicate)}"


def _within(opening: str, parts: list[str], mark: str, limit: int, relations: int) -> str:
    room = limit - 40  # for the last remark
    text = opening if len(opening) <= room else f"{opening[: room - 4].rsplit(',', 1)[0]}, ..."
    left = relations
    for part in parts:
        if len(text) + len(mark) + len(part) > room:
            break
        text += (mark if text else "") + part
        left -= 1
    return f"{text}{mark if text else ''}({left:,} more relations)" if left else text


def _json(graph: SceneGraph, told: list[Triplet], limit: int) -> str:
    ends = [end for t in told for end in (t.subject_index, t.object_index)]
    order = list(dict.fromkeys([*ends, *range(len(graph))]))
    names = object_names(graph)
    objects: list[dict[str, Any]] = []
    for i in order:
        row: dict[str, Any] = {"id": i, "label": names[i], "box": [round(v) for v in graph.boxes[i].tolist()]}
        if where := position(graph, i):
            row["where"] = where
        if graph.attributes is not None and graph.attributes[i]:
            row["attributes"] = [_clean(name) for name, _ in graph.attributes[i]]
        objects.append(row)
    links = [[t.subject_index, _clean(t.predicate), t.object_index] for t in told]
    most = range(1 + max(len(objects), len(links)))
    fits = bisect_right(most, limit, 1, key=lambda k: len(_dump(graph, objects, links, k)))
    return _dump(graph, objects, links, fits - 1)


def _dump(graph: SceneGraph, objects: list[dict[str, Any]], links: list[list[Any]], most: int) -> str:
    kept = objects[:most]
    known = {row["id"] for row in kept}
    relations = [link for link in links[:most] if link[0] in known and link[2] in known]
    left = {"objects": len(graph) - len(kept), "relations": len(graph.relations) - len(relations)}
    data: dict[str, Any] = {"size": [graph.width, graph.height], "objects": kept, "relations": relations}
    if any(left.values()):
        data["left_out"] = left
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _clean(name: str) -> str:
    return printable(name)[:60]
