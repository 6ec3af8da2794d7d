"""Graphs as the knowledge of systems that retrieve text for language models: LightRAG's custom_kg, GraphRAG's tables.

An object is an entity ("man 1 in 7"), a related pair a relationship, an image the source of both: its graph in words.
Both systems allow one undirected relationship per pair, and none of an entity with itself: the relations of a pair
share one description ("man riding horse; horse under man").
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenegpi.errors import DataError, printable, require
from scenegpi.files import whole_file, whole_folder
from scenegpi.graph import SceneGraph
from scenegpi.graph_text import object_names, position

TEXT = 4000
"""Maximum characters of an image's text."""


@dataclass(frozen=True)
class ImageFacts:
    """One image: its name, its file, its text; entities (title, type, description) by object, and
    relationships (subject, object, description, predicates, best score)."""

    key: str
    file: str
    text: str
    entities: list[tuple[str, str, str]]
    relationships: list[tuple[int, int, str, str, float]]


def _sources(target: Path, graphs: Iterable[SceneGraph]) -> Iterator[ImageFacts]:
    seen: set[str] = set()
    for graph in graphs:
        key = printable(str(f"image {len(seen)}" if graph.key is None else graph.key))
        if key in seen:
            raise DataError(target, f"image {key!r:.60} is duplicated")
        seen.add(key)
        file = printable(graph.file or key)
        names = object_names(graph)
        twice = {name for name, count in Counter(names).items() if count > 1}
        titles = [f"{f'{name} #{i}' if name in twice else name} in {key}" for i, name in enumerate(names)]
        said: dict[tuple[int, int], list[Any]] = {}
        for t in graph.triplets():
            ends = (min(t.subject_index, t.object_index), max(t.subject_index, t.object_index))
            if ends[0] != ends[1]:
                said.setdefault(ends, []).append(t)
        words = [printable(label) for label in graph.names]
        rows = []
        for (s, o), links in said.items():
            lines = [f"{words[t.subject_index]} {printable(t.predicate)} {words[t.object_index]}" for t in links]
            predicates = dict.fromkeys(printable(t.predicate) for t in links)
            rows.append((s, o, "; ".join(lines), ", ".join(predicates), links[0].score))
        about = [_about(graph, i, words[i], file) for i in range(len(graph))]
        entities = list(zip(titles, words, about, strict=True))
        yield ImageFacts(key, file, f"{file}: {graph.to_text(limit=TEXT)}", entities, rows)


def _about(graph: SceneGraph, i: int, label: str, file: str) -> str:
    attributes = "".join(f"{printable(name)} " for name, _ in graph.attributes[i]) if graph.attributes else ""
    where = position(graph, i)
    return f"{attributes}{label} in {file}{f', {where}' if where else ''}"


def write_lightrag(target: Path, graphs: Iterable[SceneGraph], overwrite: bool = False) -> int:
    """JSON for `LightRAG.insert_custom_kg`; the weight of a relationship is 1, for its source, plus its best score."""
    kg: dict[str, list[dict[str, Any]]] = {"chunks": [], "entities": [], "relationships": []}
    for each in _sources(target, graphs):
        origin = {"source_id": each.key, "file_path": each.file}
        kg["chunks"].append({"content": each.text, **origin})
        kg["entities"] += [
            {"entity_name": title, "entity_type": kind, "description": about, **origin}
            for title, kind, about in each.entities
        ]
        kg["relationships"] += [
            {"src_id": each.entities[s][0], "tgt_id": each.entities[o][0], "description": text, "keywords": words}
            | {"weight": 1 + score, **origin}
            for s, o, text, words, score in each.relationships
        ]
    with whole_file(target, overwrite) as part:
        part.write_text(json.dumps(kg, ensure_ascii=False, allow_nan=False), encoding="utf-8")
    return len(kg["chunks"])


def write_graphrag(target: Path, graphs: Iterable[SceneGraph], overwrite: bool = False) -> int:
    """A folder with the tables of GraphRAG's index that its own extraction would make; `n_tokens` counts words."""
    require("graphrag", "search", "pyarrow")
    import pyarrow as pa
    from pyarrow import parquet

    tables: dict[str, list[dict[str, Any]]] = {n: [] for n in ("entities", "relationships", "text_units", "documents")}
    for number, each in enumerate(_sources(target, graphs)):
        degree = Counter(end for row in each.relationships for end in row[:2])
        ids = [f"{each.key}/{i}" for i in range(len(each.entities))]
        links = [f"{ids[s]}-{o}" for s, o, *_ in each.relationships]
        unit = {"text_unit_ids": [each.key]}
        for i, (title, kind, about) in enumerate(each.entities):
            row = {"id": ids[i], "human_readable_id": len(tables["entities"]), "title": title, "type": kind}
            tables["entities"].append(row | {"description": about, **unit, "frequency": 1, "degree": degree[i]})
        for link, (s, o, text, _, score) in zip(links, each.relationships, strict=True):
            row = {"id": link, "human_readable_id": len(tables["relationships"]), "source": each.entities[s][0]}
            row |= {"target": each.entities[o][0], "description": text, "weight": score}
            tables["relationships"].append(row | {"combined_degree": degree[s] + degree[o], **unit})
        about_it = {"id": each.key, "human_readable_id": number, "text": each.text}
        more = {"n_tokens": len(each.text.split()), "document_id": each.key, "document_ids": [each.key]}
        more |= {"entity_ids": ids, "relationship_ids": links, "covariate_ids": []}
        tables["text_units"].append(about_it | more)
        tables["documents"].append(about_it | {"title": each.file, **unit})
    with whole_folder(target, overwrite) as part:
        for name, rows in tables.items():
            parquet.write_table(pa.Table.from_pylist(rows), part / f"{name}.parquet")
    return len(tables["documents"])
