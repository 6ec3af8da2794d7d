"""What people say of images: kept in a journal to which each change is added, on the disk before it is called saved.

A line is an image's whole state, names that were added to the vocabulary, or the data that all of it is about. A line
that a crash cut short is the last one, was never called saved, and is written over. The newest states of each image are
kept as its history; older ones are dropped when the journal is opened and has grown long.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from scenegpi.errors import DataError, GraphError
from scenegpi.files import MAX_BYTES, no_link, open_file, parse_json, reason, whole_file
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import to_dict
from scenegpi.locks import folder_lock
from scenegpi.vocabulary import Vocabulary

JOURNAL = "journal.jsonl"
KEPT = 20
"""States of an image that its history goes back."""
LONG = 1000
"""A journal with this many lines more than it needs is written anew when it is opened."""
CONFIRMED = ("done", "reviewed")
STATUSES = ("begun", *CONFIRMED, "rejected")


class ConflictError(Exception):
    """The state that a change was based on is not the newest."""


class NotWrittenError(DataError):
    """The disk did not take a change, which may be tried again."""


@dataclass(frozen=True)
class State:
    """Of one image: its graph, how far it is, and the number of the change.

    `machine` are the boxes that no person has touched; `change` is what its window called it, so that a change which
    is sent twice counts once; `by`, `comment` and `at` say who made it, what they remarked, and when.
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
        """The graph without boxes that only a model has seen, unless a person has said that it is done."""
        if self.status in CONFIRMED or not self.machine:
            return self.graph
        seen = np.ones(len(self.graph), dtype=bool)
        seen[list(self.machine)] = False
        return self.graph.subset(seen)


class Annotations:
    """The states of images by their key; a context manager that holds the folder for itself.

    Args:
        folder: where the journal is; made where there is none.
        source: the data that is annotated; a journal about other data is refused.
        moved: the data of the journal is now at `source`.
    """

    def __init__(self, folder: Path, source: str = "", moved: bool = False) -> None:
        self.folder, self.path, self.source, self.moved = folder, folder / JOURNAL, source, moved
        self.states: dict[str, State] = {}
        self.objects: dict[str, None] = {}
        self.predicates: dict[str, None] = {}
        self._places: dict[str, list[tuple[int, int]]] = {}
        self._sources: list[str] = []
        self._handle: int | None = None
        self._end, self._lines, self._broken = 0, 0, False
        self._lock = threading.Lock()
        self._open = ExitStack()

    def __enter__(self) -> Annotations:
        if not self.folder.exists():
            self._open.callback(self._leave)
        self._open.enter_context(folder_lock(self.folder))
        try:
            if self.path.exists():
                self._read()
                self._shorten()
            known = self._sources[-1] if self._sources else self.source
            if known != self.source and not self.moved:
                said = f"holds annotations of {known}, not of {self.source}"
                raise DataError(self.folder, f"{said}; choose another --annotations, or say --moved if it moved")
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
            self._handle = None
        self._open.close()

    def save(
        self,
        key: str,
        graph: SceneGraph,
        status: str,
        based_on: int,
        *,
        machine: Iterable[int] = (),
        by: str = "",
        comment: str = "",
        change: str = "",
    ) -> State:
        """Keeps a state; it is on the disk when this returns.

        Raises ConflictError where `based_on` is not the kept revision (0: none is kept), NotWrittenError where the disk
        does not take it. A change that was saved already is not saved again.
        """
        with self._lock:
            now = self.states.get(key)
            if now is not None and change and now.change == change:
                return now
            if based_on != (0 if now is None else now.revision):
                raise ConflictError
            at = datetime.now(UTC).isoformat(timespec="seconds")
            state = State(graph, status, based_on + 1, tuple(sorted(set(machine))), by, comment, change, at)
            place = self._append(_line(key, state))
            self.states[key] = state
            self._places.setdefault(key, []).append(place)
            return state

    def add_names(self, objects: Iterable[str], predicates: Iterable[str]) -> None:
        """Names that annotations may use from now on."""
        with self._lock:
            new = [name for name in dict.fromkeys(objects) if name not in self.objects]
            more = [name for name in dict.fromkeys(predicates) if name not in self.predicates]
            if new or more:
                self._append(_dumps({"names": {"objects": new, "predicates": more}}))
                self.objects |= dict.fromkeys(new)
                self.predicates |= dict.fromkeys(more)

    def vocabulary(self, base: Vocabulary) -> Vocabulary:
        """With the names that were added, behind those of `base`."""
        objects = tuple(dict.fromkeys((*base.objects, *self.objects)))
        predicates = tuple(dict.fromkeys((*base.predicates, *self.predicates)))
        if (objects, predicates) == (base.objects, base.predicates):
            return base
        return Vocabulary(objects, predicates, base.name)

    def history(self, key: str) -> list[State]:
        """The states of an image, newest first."""
        with self._lock:
            some = self._places.get(key, [])[-KEPT:]
            lines = [os.pread(self._descriptor(), length, start) for start, length in some]
        return [_state(parse_json(line)) for line in reversed(lines)]

    def counts(self) -> tuple[int, int, int]:
        """Images with a state, images done, and relations in all."""
        states = list(self.states.values())
        done = sum(state.status in CONFIRMED for state in states)
        return len(states), done, sum(len(state.graph.relations) for state in states)

    def graphs(self, statuses: Iterable[str] = CONFIRMED) -> Iterator[SceneGraph]:
        """What people confirmed, by key."""
        for key, state in sorted(self.states.items()):
            if state.status in statuses:
                graph = state.confirmed()
                yield graph if graph.image_id is not None else graph.replace(image_id=key)

    def _read(self) -> None:
        newest: dict[str, tuple[int, Any]] = {}
        torn: tuple[int, Exception] | None = None
        with open_file(self.path, MAX_BYTES, empty=True) as handle:
            for number, line in enumerate(handle, 1):
                if torn is not None:
                    raise DataError(self.path, f"line {torn[0]}: {torn[1]}")
                try:
                    data = parse_json(line)
                    self._take(number, data, len(line), newest)
                except (GraphError, AttributeError, KeyError, TypeError, ValueError) as error:
                    torn = number, error  # cut short by a crash if nothing follows it
                else:
                    self._end += len(line)
                    self._lines += 1
                    self._broken = not line.endswith(b"\n")
        for key, (number, data) in newest.items():
            try:
                self.states[key] = _state(data)
            except (GraphError, KeyError, TypeError, ValueError) as error:
                raise DataError(self.path, f"line {number}: {error}") from None

    def _take(self, number: int, data: Any, length: int, newest: dict[str, tuple[int, Any]]) -> None:
        if "source" in data:
            self._sources.append(str(data["source"]))
        elif "names" in data:
            self.objects |= dict.fromkeys(map(str, data["names"]["objects"]))
            self.predicates |= dict.fromkeys(map(str, data["names"]["predicates"]))
        else:
            key = str(data["key"])
            int(data["revision"]), data["graph"]
            newest[key] = number, data
            self._places.setdefault(key, []).append((self._end, length))

    def _shorten(self) -> None:
        """Without states beyond the history. What is there stays as it is where the disk does not take it."""
        needed = sum(min(KEPT, len(some)) for some in self._places.values())
        if self._lines <= needed + LONG:
            return
        places: dict[str, list[tuple[int, int]]] = {}
        head: list[dict[str, Any]] = [{"source": source} for source in self._sources[-1:]]
        head.append({"names": {"objects": list(self.objects), "predicates": list(self.predicates)}})
        old = self._descriptor()
        with suppress(DataError):
            with whole_file(self.path) as part, part.open("wb") as handle:
                for data in head:
                    handle.write(_dumps(data))
                for key, some in self._places.items():
                    for start, length in some[-KEPT:]:
                        line = os.pread(old, length, start).rstrip() + b"\n"
                        places.setdefault(key, []).append((handle.tell(), len(line)))
                        handle.write(line)
                end = handle.tell()
            self._places, self._end, self._broken = places, end, False
        os.close(old)
        self._handle = None  # it is opened anew when it is needed: the file may be another one now

    def _descriptor(self) -> int:
        if self._handle is None:
            self._handle = no_link(str(self.path), os.O_RDWR | os.O_CREAT)
        return self._handle

    def _append(self, data: bytes) -> tuple[int, int]:
        """Where the line is: after the last whole one, whatever a failed write has left there."""
        start = self._end
        known = self._sources[-1:] == [self.source]
        head = (b"\n" if self._broken else b"") + (b"" if known else _dumps({"source": self.source}))
        try:
            handle = self._descriptor()
            os.ftruncate(handle, start)
            left, at = head + data, start
            while left:
                written = os.pwrite(handle, left, at)
                left, at = left[written:], at + written
            os.fsync(handle)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._descriptor(), start)
            raise NotWrittenError(self.path, f"cannot be written ({reason(error)})") from None
        if not known:
            self._sources.append(self.source)
        self._end, self._broken = at, False
        return start + len(head), len(data)

    def _leave(self) -> None:
        with suppress(OSError):  # not empty: there is a journal
            self.folder.rmdir()


def _line(key: str, state: State) -> bytes:
    said = {each.name: getattr(state, each.name) for each in fields(state) if each.name != "graph"}
    said = {name: value for name, value in said.items() if value not in ("", ())}
    return _dumps({"key": key, **said, "graph": to_dict(state.graph)})


def _dumps(data: dict[str, Any]) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _state(data: dict[str, Any]) -> State:
    status = data.get("status") or ("done" if data.get("done") else "begun")  # journals of before had `done`
    if status not in STATUSES:
        raise ValueError(f"status: {status!r:.60} is not one of {', '.join(STATUSES)}")
    texts = {name: str(data.get(name, "")) for name in ("by", "comment", "change", "at")}
    machine = tuple(int(k) for k in data.get("machine", ()))
    return State(SceneGraph.from_dict(data["graph"]), status, int(data["revision"]), machine, **texts)
