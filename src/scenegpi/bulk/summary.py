"""What became of the images of a run: one `Answer` each, and a `Summary` of all of them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenegpi.bulk.run_folder import Row
from scenegpi.bulk.run_inputs import Entry
from scenegpi.errors import printable
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import from_dict, to_dict
from scenegpi.prediction import Prediction
from scenegpi.vocabulary import Vocabulary

SHOWN = 5
"""Images whose relations are printed."""


@dataclass
class Answer:
    """What became of one image."""

    entry: Entry
    prediction: Prediction

    @property
    def row(self) -> Row:
        """Of an image that was predicted."""
        assert self.prediction.graph is not None
        entry = self.entry
        photo = entry.item.photo if isinstance(entry.item.photo, Path) else None  # else it is in a table
        return Row(entry.source, entry.name, self.prediction.graph, entry.digest, photo)


@dataclass
class Summary:
    """Of the whole run: how many images, what was skipped and why, what happened to boxes, a few graphs to show."""

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

    def add(self, answer: Answer) -> None:
        found, entry = answer.prediction, answer.entry
        if entry.known is not None:
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
        """Adds what became of other images."""
        for name in PLAIN:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for vocabulary, counts in other.names.items():
            self.names.setdefault(vocabulary, Counter()).update(counts)
        self.shown = (self.shown + other.shown)[:SHOWN]
        self.target = self.target or other.target

    def to_json(self) -> str:
        """One line, for another machine; read back by `from_json`."""
        data: dict[str, Any] = {name: getattr(self, name) for name in PLAIN}
        data["names"] = [[vocabulary.to_dict(), counts] for vocabulary, counts in self.names.items()]
        data["shown"] = [[key, name, to_dict(graph)] for key, name, graph in self.shown]
        data["target"] = None if self.target is None else self.target.to_dict()
        return json.dumps(data, allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> Summary:
        data = json.loads(line)
        summary = cls(**{name: data[name] for name in PLAIN})
        summary.left_out, summary.photos_unread = Counter(summary.left_out), Counter(summary.photos_unread)
        summary.names = {Vocabulary.from_dict(words): Counter(counts) for words, counts in data["names"]}
        summary.shown = [(key, name, from_dict(graph)) for key, name, graph in data["shown"]]
        summary.target = data["target"] and Vocabulary.from_dict(data["target"])
        return summary


PLAIN = ("predicted", "resumed", "skipped", "boxes", "relations", "left_out", "photos_unread")
"""Fields of a summary that are JSON as they are."""
