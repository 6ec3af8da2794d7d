r"""Images by a whole graph (Johnson et al. 2015): how much of the graph an image shows.

.. math:: s(I) = \sum_{t} w_t \max_{r \in I,\, r \sim t} P(r) + \sum_{l} w_l \max_{o \in I,\, o \sim l} P(o),
          \qquad w = \log \frac{1 + N}{1 + n}

over the distinct triplets t and labels l of the graph; r ~ t has its labels and predicate, P(r) is the score of a
relation; of N images' relations (objects) n are like it, so that what is rare counts more. Every term is one pass over
a table; that all triplets hold for the same objects is not asked.
"""

from __future__ import annotations

from math import log
from typing import Any

from scenegpi.graph import SceneGraph
from scenegpi.store.words import StoreWords


def retrieval(graph: SceneGraph, words: StoreWords, images: int) -> tuple[str, list[Any]]:
    """SQL that gives image and score of all images, best first, and its parameters."""
    triplets = sorted({(t.subject, t.predicate, t.object) for t in graph.triplets()})
    labels = sorted(set(graph.names))
    parts, values = [], []
    if triplets:
        rows = [(*t, log((1 + images) / (1 + min(words.triplets.get(t, 0), images)))) for t in triplets]
        values += [value for row in rows for value in row]
        parts.append(
            "SELECT r.image, t.weight * max(r.subject_score::DOUBLE * r.object_score * r.predicate_score) AS part "
            f"FROM relations r JOIN (VALUES {', '.join(['(?, ?, ?, ?::DOUBLE)'] * len(rows))}) t(s, p, o, weight) "
            "ON r.subject_label = t.s AND r.predicate = t.p AND r.object_label = t.o "
            "GROUP BY r.image, t.s, t.p, t.o, t.weight"
        )
    if labels:
        known = [(label, log((1 + images) / (1 + min(words.labels.get(label, 0), images)))) for label in labels]
        values += [value for row in known for value in row]
        parts.append(
            "SELECT b.image, l.weight * max(b.score::DOUBLE) AS part "
            f"FROM objects b JOIN (VALUES {', '.join(['(?, ?::DOUBLE)'] * len(known))}) l(label, weight) "
            "ON b.label = l.label GROUP BY b.image, l.label, l.weight"
        )
    found = " UNION ALL ".join(parts) or "SELECT image, 0.0 AS part FROM images"
    text = (
        f"SELECT i.image, coalesce(f.score, 0) AS score FROM images i LEFT JOIN "
        f"(SELECT image, sum(part) AS score FROM ({found}) GROUP BY image) f USING (image) ORDER BY score DESC, i.image"
    )
    return text, values
