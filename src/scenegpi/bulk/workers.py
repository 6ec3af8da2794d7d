"""A run: batches of images through a Predictor, here or in worker processes, into a folder."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain, islice
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import Literal

from scenegpi.bulk.digests import image_digest
from scenegpi.bulk.image_files import file_names, write_image
from scenegpi.bulk.run_folder import PredictionLog
from scenegpi.bulk.run_inputs import Entry, Inputs
from scenegpi.bulk.summary import SHOWN, Summary, rows_of
from scenegpi.errors import DataError
from scenegpi.prediction import Prediction, PredictOptions, Predictor
from scenegpi.prediction.finding import FinderSpec
from scenegpi.prediction.model import Backend

Form = Literal["jsonl", "parquet"]
RESTARTS = 3
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Setup:
    """Everything that a worker needs to make its predictor and write files."""

    model: str
    finder: FinderSpec | None
    options: PredictOptions
    folder: Path
    formats: tuple[str, ...]
    device: str = "cpu"
    threads: int = 0
    backend: Backend | None = None

    def predictor(self) -> Predictor:
        return Predictor(self.model, self.finder, self.options, self.device, self.backend)


@dataclass(frozen=True)
class Engine:
    """Who does the work: `jobs` processes on this machine, which write `batch` images at a time; or ray, at the
    `address` of a cluster (None starts one on this machine), which writes `shard` images per file of this `form`.

    `resume` insists on continuing the run in the folder; `force` starts again and overwrites files in the way.
    """

    kind: Literal["local", "ray"] = "local"
    jobs: int = 1
    batch: int = 64
    address: str | None = None
    shard: int = 1024
    form: Form = "jsonl"
    resume: bool = False
    force: bool = False


def run(inputs: Inputs, setup: Setup, engine: Engine, log: PredictionLog, step: Callable[[int], None]) -> Summary:
    """Predicts the images that the log does not hold from the same content; `step` is told the size of each batch."""
    summary, work = Summary(), _Work(inputs, setup, log)
    entries = iter(work)
    first = list(islice(entries, 1))
    entries = chain(first, entries)
    batches = map(work.claimed, iter(lambda: list(islice(entries, engine.batch)), []))
    answers: Iterator[list[Entry]] = iter(())
    with ExitStack() as stack:  # a stop ends the workers now, not while the program is being taken down
        if first and engine.jobs <= 1:  # without a first one everything is done, and no model is loaded
            answers = map(Worker(setup).answer, batches)
        elif first:
            answers = stack.enter_context(closing(_in_processes(batches, setup, engine.jobs)))
        for some in answers:
            new = [entry for entry in some if entry.known is None]
            log.append(rows_of(new))
            for entry in new:
                if entry.source in log.done and log.done[entry.source].digest != entry.digest:
                    log.forget(entry.source)  # the answer to an earlier version of its photo or boxes
            for entry in some:
                summary.add(entry)
            step(len(some))
    step(work.unchanged)
    summary.resumed += work.unchanged
    if summary.predicted + summary.resumed <= SHOWN:
        before = {source: entry for source, entry in work.first.items() if source in work.sources_before}
        summary.shown += [(before[row["source"]].item.key, row["name"], graph) for row, graph in log.predicted(before)]
        order = [entry.item.key for entry in work.first.values()]
        summary.shown.sort(key=lambda shown: order.index(shown[0]))
    return summary


class _Work:
    """Sorts the images of a call: those to predict, then those of which only files are missing."""

    def __init__(self, inputs: Inputs, setup: Setup, log: PredictionLog) -> None:
        self.inputs, self.setup, self.log = inputs, setup, log
        self.first: dict[str, Entry] = {}
        self.sources_before: set[str] = set()
        self.unchanged = 0

    def __iter__(self) -> Iterator[Entry]:
        lacking: dict[str, Entry] = {}
        for entry in self.inputs.part(0, len(self.inputs), self.log.names()):
            digest = image_digest(entry.item.photo, entry.item.graph, self.log.settings_digest)
            entry = replace(entry, digest=digest)
            if len(self.first) < SHOWN:
                self.first[entry.source] = entry
            before = self.log.done.get(entry.source)
            if entry.problem or before is None or before.digest != digest:
                yield entry
                continue
            if len(self.sources_before) < SHOWN:
                self.sources_before.add(entry.source)
            if self._has_files(entry.name):
                self.unchanged += 1
            else:
                lacking[entry.source] = replace(entry, item=replace(entry.item, graph=None))
        for row, graph in self.log.predicted(lacking):
            yield replace(lacking[row["source"]], known=graph)

    def claimed(self, entries: list[Entry]) -> list[Entry]:
        """A batch whose files may be written: files of earlier answers to other content are removed."""
        for entry in entries:
            if entry.known is None and not entry.problem:
                self.log.remove_files(entry.source)
        names = (name for entry in entries for name in file_names(entry.name, self.setup.formats).values())
        self.log.manifest.claim(names)
        return entries

    def _has_files(self, name: str) -> bool:
        files = file_names(name, self.setup.formats).values()
        return all(file in self.log.manifest.names and (self.log.folder / file).is_file() for file in files)


def _in_processes(batches: Iterator[list[Entry]], setup: Setup, jobs: int) -> Generator[list[Entry], None, None]:
    """Answers in order. If a worker is killed, all workers are replaced, and open batches are repeated."""
    waiting: list[list[Entry]] = []
    others = set(active_children())
    restarts = 0
    more = True
    while more or waiting:
        # fork would copy torch's threads in an unknown state; a started process is clean
        pool = ProcessPoolExecutor(jobs, get_context("spawn"), _start, (setup, os.getpid()))
        futures: list[Future[list[Entry]]] = []
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
            for process in set(active_children()) - others:  # what they did not return is done again
                process.kill()
                process.join()
            # Waiting for the pool's own thread: at the exit of the program it may be closing the pipe that wakes it.
            pool.shutdown(cancel_futures=True)


def _submitted(pool: ProcessPoolExecutor, entries: list[Entry]) -> Future[list[Entry]]:
    """Gives a batch to a worker. A worker that is started for it inherits an ignored SIGINT."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return pool.submit(_answer, entries)
    finally:
        signal.signal(signal.SIGINT, before)


class Worker:
    """A predictor, made once, that answers batches and writes the files of each image."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.predictor = setup.predictor()
        if setup.threads and "torch" in sys.modules:
            import torch

            torch.set_num_threads(setup.threads)

    def answer(self, entries: list[Entry]) -> list[Entry]:
        new = (entry.item for entry in entries if not entry.problem and entry.known is None)
        predictions = self.predictor.stream(new)
        answers = []
        for entry in entries:
            known = entry.problem or entry.known is not None
            found = Prediction(entry.item, entry.known, entry.problem) if known else next(predictions)
            if found.graph is not None:
                try:
                    write_image(found.graph, self.setup.folder, entry.name, self.setup.formats, entry.item.photo)
                except DataError as error:
                    photo = entry.item.photo  # only an error about the photo itself is a problem of this image
                    if ("image" if isinstance(photo, bytes) else os.fspath(photo or "")) != error.file:
                        raise
                    found.graph, found.problem = None, str(error)
            answers.append(replace(entry, prediction=found))
        return answers


_worker: Worker | None = None


def _start(setup: Setup, parent: int) -> None:
    """Sets up a worker process, which dies with its parent."""
    global _worker
    if sys.platform == "linux":
        from ctypes import CDLL

        CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    _worker = Worker(setup)


def _answer(entries: list[Entry]) -> list[Entry]:
    assert _worker is not None
    return _worker.answer(entries)
