"""The run of `scenegpi predict`: batches of images through a Predictor, here or in worker processes, into a folder."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Any

from scenegpi.commands.predict_inputs import Entry, Inputs
from scenegpi.commands.predict_output import PredictionLog, write_image
from scenegpi.errors import DataError, printable
from scenegpi.graph import SceneGraph
from scenegpi.graph_json import from_dict, to_dict
from scenegpi.prediction import Prediction, PredictOptions, Predictor
from scenegpi.prediction.model import Backend
from scenegpi.vocabulary import Vocabulary

SHOWN = 5
"""Images whose relations are printed."""
RESTARTS = 3
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Setup:
    """All that a worker needs to make its predictor and to write files."""

    model: str
    finder: str | None
    options: PredictOptions
    folder: Path
    formats: tuple[str, ...]
    device: str = "cpu"
    threads: int = 0
    backend: Backend | None = None


@dataclass
class Answer:
    """What became of one image."""

    entry: Entry
    prediction: Prediction


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
        self.left_out.update(found.left_out)
        if found.vocabulary is not None:
            self.names.setdefault(found.vocabulary, Counter()).update(found.names)
        if found.graph is None:
            self.skipped.append(printable(found.problem))
            return
        self.predicted += 1
        self.target = found.graph.vocabulary
        if found.why_unread:
            self.photos_unread[found.why_unread] += 1
        self.boxes += len(found.graph)
        self.relations += len(found.graph.relations)
        if len(self.shown) < SHOWN:
            self.shown.append((entry.item.key, entry.name, found.graph))

    def join(self, other: Summary) -> None:
        """Adds what became of other images."""
        self.predicted += other.predicted
        self.resumed += other.resumed
        self.skipped += other.skipped
        self.boxes += other.boxes
        self.relations += other.relations
        for vocabulary, counts in other.names.items():
            self.names.setdefault(vocabulary, Counter()).update(counts)
        self.left_out.update(other.left_out)
        self.photos_unread.update(other.photos_unread)
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


def run(
    inputs: Inputs, setup: Setup, log: PredictionLog, batch: int, jobs: int, step: Callable[[int], None]
) -> Summary:
    """Predicts what the log does not hold yet; `step` is told how many images each batch had."""
    summary = Summary()
    wanted = _not_done(inputs, log, summary, step)
    batches = iter(lambda: list(islice(wanted, batch)), [])
    answers = map(Worker(setup).answer, batches) if jobs <= 1 else _in_processes(batches, setup, jobs)
    for some in answers:
        log.append((a.entry.item.key, a.entry.name, a.prediction.graph) for a in some if a.prediction.graph is not None)
        for answer in some:
            summary.add(answer)
        step(len(some))
    return summary


def _not_done(inputs: Inputs, log: PredictionLog, summary: Summary, step: Callable[[int], None]) -> Iterator[Entry]:
    done = frozenset(log.done)
    for entry in inputs:
        if entry.item.key in done:
            summary.resumed += 1
            step(1)
        else:
            yield entry


def _in_processes(batches: Iterator[list[Entry]], setup: Setup, jobs: int) -> Iterator[list[Answer]]:
    """Answers in order. Where a worker was killed, new ones do its batches, and those of the others, again."""
    waiting: list[list[Entry]] = []
    others = set(active_children())
    restarts = 0
    more = True
    while more or waiting:
        # fork would copy torch's threads in an unknown state; a started process is clean
        pool = ProcessPoolExecutor(jobs, get_context("spawn"), _start, (setup, os.getpid()))
        futures: list[Future[list[Answer]]] = []
        try:
            futures = [_submitted(pool, some) for some in waiting]
            while more or waiting:
                while more and len(waiting) <= 2 * jobs:
                    some = next(batches, None)
                    more = some is not None
                    if some is not None:
                        waiting.append(some)
                        futures.append(_submitted(pool, some))
                if waiting:
                    answers = futures[0].result()
                    del futures[0], waiting[0]
                    yield answers
        except BrokenProcessPool:
            restarts += 1
            if restarts > RESTARTS:
                raise DataError("--jobs", f"worker processes were killed {restarts} times (out of memory?)") from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(active_children()) - others:  # what they have not handed over is done again
                process.kill()
                process.join()


def _submitted(pool: ProcessPoolExecutor, entries: list[Entry]) -> Future[list[Answer]]:
    """Hands a batch to a worker. One that is started for it inherits that Ctrl-C is none of its business."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return pool.submit(_answer, entries)
    finally:
        signal.signal(signal.SIGINT, before)


class Worker:
    """A predictor, made once, that answers batches and writes the files of each image."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.predictor = Predictor(setup.model, setup.finder, setup.options, setup.device, setup.backend)
        if setup.threads and "torch" in sys.modules:
            import torch

            torch.set_num_threads(setup.threads)

    def answer(self, entries: list[Entry]) -> list[Answer]:
        predictions = self.predictor.stream(entry.item for entry in entries if not entry.problem)
        answers = []
        for entry in entries:
            found = Prediction(entry.item, problem=entry.problem) if entry.problem else next(predictions)
            if found.graph is not None:
                try:
                    write_image(found.graph, self.setup.folder, entry.name, self.setup.formats, entry.item.photo)
                except DataError as error:
                    if os.fspath(entry.item.photo or "") != error.file:  # a full disk is no fault of the photo
                        raise
                    found.graph, found.problem = None, str(error)
            answers.append(Answer(entry, found))
        return answers


_worker: Worker | None = None


def _start(setup: Setup, parent: int) -> None:
    """Of a worker process: it dies with its parent."""
    global _worker
    if sys.platform == "linux":
        from ctypes import CDLL

        CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    _worker = Worker(setup)


def _answer(entries: list[Entry]) -> list[Answer]:
    assert _worker is not None
    return _worker.answer(entries)
