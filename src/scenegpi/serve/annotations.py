"""Annotations by people: a journal (`scenegpi.bulk.journal`) to which each change is added at once.

A row is an image's whole state, names added to the vocabulary, or the name of the annotated data. The
newest states of each image are its history; older ones are dropped when the journal is opened and has grown long.
Nothing is written before the first change.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.bulk.journal import Journal, read_rows
from scenegpi.errors import DataError, GraphError
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import to_dict
from scenegpi.locks import folder_lock
from scenegpi.vocabulary import Vocabulary

JOURNAL = "journal.jsonl"
KEPT = 20
"""Number of states in an image's history."""
LONG = 1000
"""A journal with more than this many lines outside the histories is rewritten when it is opened."""
CONFIRMED = ("done", "reviewed")
STATUSES = ("begun", *CONFIRMED, "rejected")


class ConflictError(Exception):
    """The state that a change was based on is not the newest."""


class NotWrittenError(DataError):
    """A change could not be written to disk; it may be tried again."""


@dataclass(frozen=True)
class State:
    """The graph of an image, its status, and the number of the change.

    `machine` are the boxes that no person has touched; `change` is the browser's id of the change, so that it is saved
    once if it is sent twice; `by`, `comment` and `at` are its author, remark and time.
    """

    graph: SceneGraph
    status: str
    revision: int
    machine: tuple[int, ...] = ()
    by: str = ""
    comment: str = ""
    change: str = ""
    at: str = ""

    def confirmed(self) -> SceneGraph:
        """The graph without boxes that no person has touched, unless a person marked it as done."""
        if self.status in CONFIRMED or not self.machine:
            return self.graph
        seen = np.ones(len(self.graph), dtype=bool)
        seen[list(self.machine)] = False
        return self.graph.subset(seen)


class Annotations:
    """The states of images by key; a context manager that locks the folder, which the first change creates.

    `source` is the data that is annotated: a journal of other data is refused, unless that data has `moved` there.
    """

    def __init__(self, folder: Path, source: str = "", moved: bool = False) -> None:
        self.folder, self.path, self.source, self.moved = folder, folder / JOURNAL, source, moved
        self.states: dict[str, State] = {}
        self.objects: dict[str, None] = {}
        self.predicates: dict[str, None] = {}
        self._known_source: str | None = None
        self._journal: Journal | None = None
        self._held = False
        self._lock = threading.Lock()
        self._open = ExitStack()

    def __enter__(self) -> Annotations:
        with ExitStack() as stack:
            if self.folder.exists():
                stack.enter_context(folder_lock(self.folder))
                self._held = True
            if self.path.exists():
                self._journal = stack.enter_context(closing(Journal(self.path)))
                self._read(self._journal)
            known = self._known_source
            if known not in (None, self.source) and not self.moved:
                said = f"holds annotations of {known}, not of {self.source}"
                raise DataError(
                    self.folder, f"{said}; choose another --annotations, or use --moved if the data has moved"
                )
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            self._journal = None
            self._open.close()

    def save(
        self, key: str, graph: SceneGraph, status: str, based_on: int, machine: Iterable[int] = (), **said: str
    ) -> State:
        """Saves a state, with `by`, `comment` and `change`; it is on the disk when this returns.

        Raises ConflictError where `based_on` is not the saved revision (0: nothing is saved yet), NotWrittenError where
        the disk can't be written to. A change that was saved already is not saved again.
        """
        with self._lock:
            now = self.states.get(key)
            if now is not None and now.change and now.change == said.get("change"):
                return now
            if based_on != (0 if now is None else now.revision):
                raise ConflictError
            state = State(graph, status, based_on + 1, tuple(sorted(set(machine))), **said, at=_now())
            self._append(_row(key, state))
            self.states[key] = state
            return state

    def begin(self, graphs: Mapping[str, tuple[SceneGraph, Iterable[int]]], comment: str) -> None:
        """Saves first states of images by key, each with the boxes that no person has touched: all or none."""
        with self._lock:
            new = {
                key: State(graph, "begun", 1, tuple(machine), comment=comment, at=_now())
                for key, (graph, machine) in graphs.items()
                if key not in self.states
            }
            self._append(*(_row(key, state) for key, state in new.items()))
            self.states |= new

    def add_names(self, objects: list[str], predicates: list[str]) -> None:
        """Adds names that annotations may use from now on."""
        if objects or predicates:
            with self._lock:
                self._append({"names": {"objects": objects, "predicates": predicates}})
                self.objects |= dict.fromkeys(objects)
                self.predicates |= dict.fromkeys(predicates)

    def vocabulary(self, base: Vocabulary) -> Vocabulary:
        """The names of `base`, then those that were added."""
        objects = tuple(dict.fromkeys((*base.objects, *self.objects)))
        predicates = tuple(dict.fromkeys((*base.predicates, *self.predicates)))
        return Vocabulary(objects, predicates, base.name)

    def history(self, key: str) -> list[State]:
        """The states of an image, newest first."""
        if key not in self.states:
            return []
        rows = deque((row for _, row in read_rows(self.path) if row.get("key") == key), KEPT)
        return [_state(row) for row in reversed(rows)]

    def counts(self) -> dict[str, int]:
        """Numbers of annotated images, of finished ones, and of relations."""
        states = list(self.states.values())
        done = sum(state.status in CONFIRMED for state in states)
        return {"images": len(states), "done": done, "relations": sum(len(each.graph.relations) for each in states)}

    def graphs(self, statuses: Iterable[str] = CONFIRMED) -> Iterator[SceneGraph]:
        """The confirmed annotations, by key."""
        for key, state in sorted(self.states.items()):
            if state.status in statuses:
                graph = state.confirmed()
                yield graph if graph.image_id is not None else graph.replace(image_id=key)

    def _read(self, journal: Journal) -> None:
        newest: dict[str, tuple[int, dict[str, Any]]] = {}
        lines: Counter[str] = Counter()
        for number, row in journal.rows():
            try:
                if "source" in row:
                    self._known_source = str(row["source"])
                elif "names" in row:
                    self.objects |= dict.fromkeys(map(str, row["names"]["objects"]))
                    self.predicates |= dict.fromkeys(map(str, row["names"]["predicates"]))
                else:
                    if not isinstance(row["key"], str):
                        raise TypeError(f"key: {row['key']!r:.60} is not a string")
                    newest[row["key"]] = number, row
                    lines[row["key"]] += 1
            except (KeyError, TypeError) as error:
                raise journal.damage(number, str(error)) from None
        for key, (number, row) in newest.items():
            try:
                self.states[key] = _state(row)
            except (GraphError, KeyError, TypeError, ValueError) as error:
                raise journal.damage(number, str(error)) from None
        if sum(max(0, count - KEPT) for count in lines.values()) > LONG:
            with suppress(DataError):  # if the disk is full, the journal stays unchanged
                journal.replace(self._shortened(journal, lines))

    def _shortened(self, journal: Journal, lines: Counter[str]) -> Iterator[dict[str, Any]]:
        """The rows without states beyond the history."""
        seen: Counter[str] = Counter()
        for _, row in journal.rows():
            key = row.get("key")
            seen[str(key)] += key is not None
            if key is None or seen[str(key)] > lines[str(key)] - KEPT:
                yield row

    def _append(self, *rows: dict[str, Any]) -> None:
        if not rows:
            return
        try:
            if self._journal is None:
                if self.path.exists():
                    raise DataError(
                        self.path, "another studio has created it since this one was started; restart the studio"
                    )
                if not self._held:
                    self._open.enter_context(folder_lock(self.folder))
                    self._held = True
                self._journal = self._open.enter_context(closing(Journal(self.path)))
            head = [] if self._known_source == self.source else [{"source": self.source}]
            self._journal.append([*head, *rows])
        except DataError as error:
            raise NotWrittenError(error.file, error.message) from None
        self._known_source = self.source


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _row(key: str, state: State) -> dict[str, Any]:
    said = {each.name: getattr(state, each.name) for each in fields(state) if each.name != "graph"}
    said = {name: value for name, value in said.items() if value not in ("", ())}
    return {"key": key, **said, "graph": to_dict(state.graph)}


def _state(data: dict[str, Any]) -> State:
    status = data.get("status") or ("done" if data.get("done") else "begun")  # older journals had `done`
    if status not in STATUSES:
        raise ValueError(f"status: {status!r:.60} is not one of {', '.join(STATUSES)}")
    texts = {name: str(data.get(name, "")) for name in ("by", "comment", "change", "at")}
    graph, machine = SceneGraph.from_dict(data["graph"]), tuple(data.get("machine", ()))
    for name, values, stop in (("revision", (data["revision"],), 2**53), ("machine", machine, len(graph))):
        if not all(type(value) is int and 0 <= value < stop for value in values):
            raise ValueError(f"{name}: expected whole numbers below {stop:,}")
    return State(graph, status, data["revision"], machine, **texts)
