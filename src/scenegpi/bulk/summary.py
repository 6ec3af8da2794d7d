"""The results of a run: the lines that are written for its images, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from scenegpi.bulk.run_folder import Row
from scenegpi.bulk.run_inputs import Entry
from scenegpi.errors import printable
from scenegpi.graph import SceneGraph
from scenegpi.vocabulary import Vocabulary

SHOWN = 5
"""Number of images whose relations are printed."""


def rows_of(entries: Iterable[Entry]) -> list[Row]:
    """The rows to write for predicted images."""
    rows = []
    for entry in entries:
        if entry.prediction is not None and entry.prediction.graph is not None:
            photo = entry.item.photo if isinstance(entry.item.photo, Path) else None  # else it is in a table
            rows.append(Row(entry.source, entry.name, entry.prediction.graph, entry.digest, photo))
    return rows


@dataclass
class Summary:
    """The whole run: how many images, what was skipped and why, what happened to boxes, a few graphs to show."""

    predicted: int = 0
    resumed: int = 0
    skipped: list[str] = field(default_factory=list)
    boxes: int = 0
    relations: int = 0
    names: dict[Vocabulary, Counter[str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    photos_unread: Counter[str] = field(default_factory=Counter)
    shown: list[tuple[str, str, SceneGraph]] = field(default_factory=list)
    target: Vocabulary | None = None

    def add(self, entry: Entry) -> None:
        """Adds an image that has an answer."""
        found = entry.prediction
        if entry.known is not None or found is None:
            self.resumed += 1
            return
        self.left_out.update(found.left_out)
        if found.vocabulary is not None:
            self.names.setdefault(found.vocabulary, Counter()).update(found.names)
        if found.graph is None:
            self.skipped.append(printable(found.problem))
            return
        self.predicted += 1
        self.target = found.graph.vocabulary
        if found.why_unread and entry.item.graph is not None and len(entry.item.graph):
            self.photos_unread[found.why_unread] += 1
        self.boxes += len(found.graph)
        self.relations += len(found.graph.relations)
        if len(self.shown) < SHOWN:
            self.shown.append((entry.item.key, entry.name, found.graph))

    def join(self, other: Summary) -> None:
        """Adds the summary of other images."""
        for name in ("predicted", "resumed", "skipped", "boxes", "relations", "left_out", "photos_unread"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for vocabulary, counts in other.names.items():
            self.names.setdefault(vocabulary, Counter()).update(counts)
        self.shown = (self.shown + other.shown)[:SHOWN]
        self.target = self.target or other.target
