"""Graphs -> the tables of a store, batch by batch (docs/search.md lists the columns).

images     image (number), key, id (as JSON), file, width, height, vocabulary
objects    image, object (0..), label, x1, y1, x2, y2, score
relations  image, subject, predicate, object, subject_label, object_label, subject_score, object_score, predicate_score
attributes image, object, attribute, score
photos     image, digest                              what an image's photo was when indexed, if it is known
triplets   subject_label, predicate, object_label, count      a summary of relations
labels     label, count                                       a summary of objects
attribute_names  attribute, count                             a summary of attributes
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

BATCH = 20_000
"""Images in a row group."""
NAME = pa.dictionary(pa.int32(), pa.string())
INT, REAL, TEXT = pa.int32(), pa.float32(), pa.string()
_COLUMNS = {
    "images": {"image": pa.int64(), "key": TEXT, "id": TEXT, "file": TEXT, "width": INT, "height": INT}
    | {"vocabulary": TEXT},
    "objects": {"image": pa.int64(), "object": INT, "label": NAME}
    | dict.fromkeys(("x1", "y1", "x2", "y2", "score"), REAL),
    "relations": {"image": pa.int64(), "subject": INT, "predicate": NAME, "object": INT}
    | {"subject_label": NAME, "object_label": NAME}
    | dict.fromkeys(("subject_score", "object_score", "predicate_score"), REAL),
    "attributes": {"image": pa.int64(), "object": INT, "attribute": NAME, "score": REAL},
    "photos": {"image": pa.int64(), "digest": TEXT},
}
SCHEMAS = {table: pa.schema(list(columns.items())) for table, columns in _COLUMNS.items()}
SUMMARIES = {
    "triplets": ("relations", "subject_label, predicate, object_label"),
    "labels": ("objects", "label"),
    "attribute_names": ("attributes", "attribute"),
}
"""Summary -> its table, and the columns by which rows are counted."""
EMPTY = {table: schema.empty_table() for table, schema in SCHEMAS.items()} | {
    table: pa.schema([*((name, TEXT) for name in columns.split(", ")), ("count", pa.int64())]).empty_table()
    for table, (_, columns) in SUMMARIES.items()
}
"""Each table without rows."""


def key_of(graph: SceneGraph, number: int) -> str:
    """The key of an image in a store: its id, else its file, else its number."""
    return f"image {number}" if graph.key is None else str(graph.key)


def write_part(
    paths: Mapping[str, Path], rows: Iterable[tuple[SceneGraph, str | None]], first: int
) -> tuple[int, dict[str, Vocabulary]]:
    """Writes the tables of one part, images numbered from `first`; gives the next free number and the vocabularies.

    `rows`: each graph, and the digest of its photo, if it is known.
    """
    remaining, number = iter(rows), first
    vocabularies: dict[str, Vocabulary] = {}
    with ExitStack() as files:
        opened = [pq.ParquetWriter(paths[name], schema, compression="zstd") for name, schema in SCHEMAS.items()]
        writers = [files.enter_context(writer) for writer in opened]
        while some := list(islice(remaining, BATCH)):
            numbers = np.arange(number, number + len(some), dtype=np.int64)
            number += len(some)
            graphs = [graph for graph, _ in some]
            known = [(n, digest) for n, (_, digest) in zip(numbers.tolist(), some, strict=True) if digest is not None]
            vocabularies |= {graph.vocabulary.reference: graph.vocabulary for graph in graphs}
            tables = (*_tables(graphs, numbers), _table("photos", known))
            for writer, table in zip(writers, tables, strict=True):
                writer.write_table(table)
    return number, vocabularies


def _tables(graphs: list[SceneGraph], numbers: NDArray[np.int64]) -> tuple[pa.Table, ...]:
    images = pa.table(
        {
            "image": numbers,
            "key": [key_of(graph, number) for graph, number in zip(graphs, numbers.tolist(), strict=True)],
            "id": [None if graph.image_id is None else json.dumps(graph.image_id) for graph in graphs],
            "file": [graph.file for graph in graphs],
            "width": [graph.width for graph in graphs],
            "height": [graph.height for graph in graphs],
            "vocabulary": [graph.vocabulary.reference for graph in graphs],
        },
        SCHEMAS["images"],
    )
    sizes = np.array([len(graph) for graph in graphs])
    labels, names = _coded(graphs, "labels", "objects")
    scores = np.concatenate([_ones(graph.scores, len(graph)) for graph in graphs])
    boxes = np.concatenate([graph.boxes for graph in graphs]).astype(np.float32)
    objects = pa.table(
        {
            "image": np.repeat(numbers, sizes),
            "object": np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes),
            "label": _names(labels, names),
            **{side: boxes[:, k] for k, side in enumerate(("x1", "y1", "x2", "y2"))},
            "score": scores,
        },
        SCHEMAS["objects"],
    )
    counts = np.array([len(graph.relations) for graph in graphs])
    rows = np.concatenate([graph.relations for graph in graphs])
    start = np.repeat(np.cumsum(sizes) - sizes, counts)
    subjects, others = rows[:, 0] + start, rows[:, 1] + start  # positions in `labels`
    predicates, words = _coded(graphs, "relations", "predicates")
    relations = pa.table(
        {
            "image": np.repeat(numbers, counts),
            "subject": rows[:, 0],
            "predicate": _names(predicates, words),
            "object": rows[:, 1],
            "subject_label": _names(labels[subjects], names),
            "object_label": _names(labels[others], names),
            "subject_score": scores[subjects],
            "object_score": scores[others],
            "predicate_score": np.concatenate([_ones(graph.relation_scores, len(graph.relations)) for graph in graphs]),
        },
        SCHEMAS["relations"],
    )
    return images, objects, relations, _attributes(graphs, numbers.tolist())


def _attributes(graphs: list[SceneGraph], numbers: list[int]) -> pa.Table:
    rows = [
        (number, i, name, score)
        for graph, number in zip(graphs, numbers, strict=True)
        for i, row in enumerate(graph.attributes or ())
        for name, score in row
    ]
    return _table("attributes", rows)


def _table(name: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    schema = SCHEMAS[name]
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.table([pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)], schema=schema)


def _ones(scores: NDArray[np.floating] | None, count: int) -> NDArray[np.float32]:
    return np.ones(count, dtype=np.float32) if scores is None else scores.astype(np.float32)


def _coded(graphs: list[SceneGraph], field: str, words: str) -> tuple[NDArray[np.int32], list[str]]:
    """Labels or predicates of all graphs, from any vocabularies, as indices into one list of names."""
    codes: dict[str, int] = {}
    tables: dict[Vocabulary, NDArray[np.int32]] = {}
    parts = []
    for graph in graphs:
        table = tables.get(graph.vocabulary)
        if table is None:
            numbers = [codes.setdefault(name, len(codes)) for name in getattr(graph.vocabulary, words)]
            table = tables[graph.vocabulary] = np.array(numbers, dtype=np.int32)
        values = getattr(graph, field)
        parts.append(table[values if values.ndim == 1 else values[:, 2]])
    return np.concatenate(parts), list(codes)


def _names(codes: NDArray[np.int32], names: list[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(names, pa.string()))
