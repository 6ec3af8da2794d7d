"""What people say of images: kept in a journal to which each change is added, on the disk before it is called saved.

A line is an image's whole state. A line that a crash cut short is the last one, was never called saved, and is dropped;
when the journal is opened, and when it has grown long, only the newest line of each image is kept, whole or not at all.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenegpi.errors import DataError, GraphError
from scenegpi.files import MAX_BYTES, no_link, open_file, parse_json, whole_file, writing
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import to_dict
from scenegpi.locks import folder_lock

JOURNAL = "journal.jsonl"
LONG = 4
"""A journal with this many times more lines than images is written anew."""


@dataclass(frozen=True)
class State:
    """Of one image: its graph, whether the person has finished it, and the number of the change."""

    graph: SceneGraph
    done: bool
    revision: int


class Annotations:
    """The states of images by their key; a context manager that holds the folder for itself.

    Args:
        folder: where the journal is; made where there is none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / JOURNAL
        self.states: dict[str, State] = {}
        self._lines = 0
        self._lock = threading.Lock()
        self._open = ExitStack()

    def __enter__(self) -> Annotations:
        self._open.enter_context(folder_lock(self.folder))
        try:
            if self.path.exists():
                self._read()
            self._rewrite()
        except BaseException:
            self._open.close()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        with self._lock:
            os.close(self._handle)
        self._open.close()

    def save(self, key: str, graph: SceneGraph, done: bool, revision: int) -> State:
        """Keeps a state; it is on the disk when this returns. An older revision than the kept one changes nothing."""
        with self._lock, writing(self.path):
            now = self.states.get(key)
            if now is not None and revision <= now.revision:
                return now
            state = State(graph, done, revision)
            data = _line(key, state)
            start = os.lseek(self._handle, 0, os.SEEK_END)
            try:
                _write(self._handle, data)
                os.fsync(self._handle)
            except OSError:
                os.ftruncate(self._handle, start)  # a half-written line would spoil the next one
                raise
            self.states[key] = state
            self._lines += 1
            if self._lines > LONG * len(self.states) + 1000:
                os.close(self._handle)
                self._rewrite()
            return state

    def counts(self) -> tuple[int, int, int]:
        """Images begun, images done, and relations in all."""
        states = list(self.states.values())
        return len(states), sum(state.done for state in states), sum(len(state.graph.relations) for state in states)

    def graphs(self, done: bool) -> Iterator[SceneGraph]:
        """The graphs by key, with `done` only of finished images."""
        for key, state in sorted(self.states.items()):
            if state.done or not done:
                yield state.graph if state.graph.image_id is not None else state.graph.replace(image_id=key)

    def _read(self) -> None:
        with open_file(self.path, MAX_BYTES, empty=True) as handle:
            lines = handle.read().split(b"\n")
        for number, line in enumerate(lines, 1):
            if not line:
                continue
            try:
                data = parse_json(line)
                graph = SceneGraph.from_dict(data["graph"])
                key, done, revision = str(data["key"]), bool(data["done"]), int(data["revision"])
            except (GraphError, KeyError, TypeError, ValueError) as error:
                if number >= len(lines) - 1:  # cut short by a crash
                    break
                raise DataError(self.path, f"line {number}: {error}") from None
            self.states[key] = State(graph, done, revision)

    def _rewrite(self) -> None:
        with whole_file(self.path) as part, part.open("wb") as handle:
            for key, state in self.states.items():
                handle.write(_line(key, state))
        self._lines = len(self.states)
        self._handle = no_link(str(self.path), os.O_WRONLY | os.O_APPEND)


def _line(key: str, state: State) -> bytes:
    data = {"key": key, "revision": state.revision, "done": state.done, "graph": to_dict(state.graph)}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _write(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
