"""Graphs -> files that an embedded graph database loads (Kuzu and its successors): four CSV files and `load.cypher`.

    (:Image {key, file, width, height})-[:CONTAINS]->(:Object {id, image, number, label, x1, y1, x2, y2, score})
    (:Object)-[:RELATION {predicate, score, predicate_score}]->(:Object)

Run the statements of `load.cypher` from inside the folder: `COPY` takes paths from where the database was started.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from scenegpi.errors import DataError
from scenegpi.files import whole_folder
from scenegpi.graph import SceneGraph

TABLES = {
    "images.csv": ("Image", ("key", "file", "width", "height")),
    "objects.csv": ("Object", ("id", "image", "number", "label", "x1", "y1", "x2", "y2", "score")),
    "contains.csv": ("CONTAINS", ("from", "to")),
    "relations.csv": ("RELATION", ("from", "to", "predicate", "score", "predicate_score")),
}
SCHEMA = """\
CREATE NODE TABLE Image(key STRING PRIMARY KEY, file STRING, width INT64, height INT64);
CREATE NODE TABLE Object(id STRING PRIMARY KEY, image STRING, number INT64, label STRING, x1 DOUBLE, y1 DOUBLE, \
x2 DOUBLE, y2 DOUBLE, score DOUBLE);
CREATE REL TABLE CONTAINS(FROM Image TO Object);
CREATE REL TABLE RELATION(FROM Object TO Object, predicate STRING, score DOUBLE, predicate_score DOUBLE);
"""
OPTIONS = "(HEADER=true, PARALLEL=false, ESCAPE='\"')"  # not in parallel: names may hold line ends


def write_cypher(target: Path, graphs: Iterable[SceneGraph], overwrite: bool = False) -> int:
    """A folder with `load.cypher` and its CSV files; returns the number of images."""
    seen: set[str] = set()
    with whole_folder(target, overwrite) as part, ExitStack() as files:
        writers = {}
        for name, (_, columns) in TABLES.items():
            handle = files.enter_context((part / name).open("w", encoding="utf-8", newline=""))
            writers[name] = csv.writer(handle, quoting=csv.QUOTE_NONNUMERIC)
            writers[name].writerow(columns)
        for graph in graphs:
            key = str(graph.image_id if graph.image_id is not None else graph.file or f"image {len(seen)}")
            if key in seen:
                raise DataError(target, f"image {key!r:.60} is duplicated")
            seen.add(key)
            writers["images.csv"].writerow([key, graph.file, graph.width, graph.height])
            ids = [f"{key}/{i}" for i in range(len(graph))]
            scores = np.ones(len(graph)) if graph.scores is None else graph.scores
            rows = zip(ids, graph.names, graph.boxes.tolist(), scores.tolist(), strict=True)
            for i, (name, label, box, score) in enumerate(rows):
                writers["objects.csv"].writerow([name, key, i, label, *box, score])
                writers["contains.csv"].writerow([key, name])
            own = np.ones(len(graph.relations)) if graph.relation_scores is None else graph.relation_scores
            for (s, o, p), score, alone in zip(
                graph.relations.tolist(), graph.triplet_scores().tolist(), own.tolist(), strict=True
            ):
                writers["relations.csv"].writerow([ids[s], ids[o], graph.vocabulary.predicates[p], score, alone])
        copies = [f"COPY {table} FROM '{name}' {OPTIONS};" for name, (table, _) in TABLES.items()]
        (part / "load.cypher").write_text(SCHEMA + "\n".join(copies) + "\n", encoding="utf-8")
    return len(seen)
