"""Predictions in SGBench's JSON, both ways.

{"version": 1, "images": [{"id", "bboxes": [[x1, y1, x2, y2]], "categories": [...], "triplets": [[s, o, predicate]]}]}

That is what its page says; version 1.0 of the package reads "annotation": [{"bbox", "category"}] instead. Both are read
and written. All numbers count from 0 in the lists of the ground truth, a psg.json: it must lie beside the file, unless
the caller knows the vocabulary. Triplets have no scores; the best comes first. Where pairs have distributions,
"ng_triplets", every predicate of every pair, are written as well: the package ranks predicates by them (PRank).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.data.graphs import Graphs
from scenegpi.data.jsonl import write_rows
from scenegpi.data.named import Image, about, entries, key_of, named_graphs, numbered, section_rows
from scenegpi.data.psg import psg_vocabulary
from scenegpi.errors import DataError, GraphError, Report
from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

FIELDS = ("bboxes", "categories", "triplets")
MOST = 1000
"""Triplets of an image with several predicates per pair."""


def read_sgbench(path: Path, report: Report, vocabulary: Vocabulary | None = None) -> Graphs:
    """One file of predictions, by the numbers of `vocabulary` or of the psg.json beside it."""
    if vocabulary is None:
        truth = path.with_name("psg.json")
        if not truth.is_file():
            raise DataError(path, "has numbers only: put the psg.json that they count in beside it, or score it (eval)")
        vocabulary = psg_vocabulary(truth)

    def images() -> Iterator[Image]:
        return (Image(key_of(row, "id"), row) for row in section_rows(path, "images"))

    return named_graphs(path, report, images, partial(_fields, vocabulary=vocabulary), vocabulary)


def _fields(image: Image, vocabulary: Vocabulary) -> dict[str, Any]:
    row = image.row
    if image.key is None:
        raise GraphError("id: expected that of an image of the ground truth")
    boxes, categories, triplets = (row.get(name) for name in FIELDS)
    if "annotation" in row:
        objects = entries(row["annotation"], "annotation")
        boxes, categories = ([each.get(name) for each in objects] for name in ("bbox", "category"))
    found: dict[str, Any] = numbered(boxes, categories, triplets, vocabulary, FIELDS)
    return found | about(image.key, None, {})


def write_sgbench(target: Path, graphs: Iterable[SceneGraph], vocabulary: Vocabulary, overwrite: bool = False) -> int:
    """One file, each image's relations best first; returns the number of images."""

    def rows() -> Iterator[dict[str, Any]]:
        for graph in graphs:
            if graph.image_id is None or graph.vocabulary != vocabulary:
                raise DataError(target, f"{graph.file}: SGBench needs an image id, and one vocabulary for all images")
            boxes, labels = graph.boxes.tolist(), graph.labels.tolist()
            order = (-graph.triplet_scores()).argsort(kind="stable")
            yield {
                "id": graph.image_id,
                **dict(zip(FIELDS, (boxes, labels, graph.relations[order].tolist()), strict=True)),
                "ng_triplets": _all_predicates(graph),
                "annotation": [{"bbox": box, "category": label} for box, label in zip(boxes, labels, strict=True)],
            }

    with whole_file(target, overwrite) as part, part.open("w", encoding="utf-8") as handle:
        handle.write('{"version": 1, "images": [')
        count = write_rows(handle, rows())
        handle.write("\n]}\n")
    return count


def _all_predicates(graph: SceneGraph) -> list[list[int]]:
    """[subject, object, predicate] of every predicate of every pair, best first; none without distributions."""
    if graph.pair_dist is None or graph.pairs is None:
        return []
    sure = np.ones(len(graph)) if graph.scores is None else graph.scores
    values = sure[graph.pairs].prod(axis=1)[:, None] * graph.pair_dist[:, 1:]
    pair, predicate = np.unravel_index(np.argsort(-values, axis=None, kind="stable")[:MOST], values.shape)
    rows: list[list[int]] = np.column_stack([graph.pairs[pair], predicate]).tolist()
    return rows
