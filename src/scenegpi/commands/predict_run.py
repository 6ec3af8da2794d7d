"""The run of `scenegpi predict`: batches of images through an Engine, here or in worker processes, into a folder."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from scenegpi.commands.predict_inputs import Inputs, Task
from scenegpi.commands.predict_output import PredictionLog, write_image
from scenegpi.errors import DataError, printable
from scenegpi.graph import SceneGraph
from scenegpi.models.bulk import Choices, Engine
from scenegpi.vocabulary import Vocabulary

SHOWN = 5  # images whose relations are printed


@dataclass(frozen=True)
class Setup:
    """All that a worker needs to make its engine and to write files."""

    model: str
    detector: str | None
    choices: Choices
    folder: Path
    formats: tuple[str, ...]
    threads: int = 0


@dataclass
class Answer:
    """What became of one image."""

    task: Task
    graph: SceneGraph | None
    problem: str
    vocabulary: Vocabulary | None
    names: Counter[str]
    left_out: Counter[str]


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
    shown: list[tuple[str, str, SceneGraph]] = field(default_factory=list)

    def add(self, answer: Answer) -> None:
        self.left_out.update(answer.left_out)
        if answer.vocabulary is not None:
            self.names.setdefault(answer.vocabulary, Counter()).update(answer.names)
        if answer.graph is None:
            self.skipped.append(answer.problem)
            return
        self.predicted += 1
        self.boxes += len(answer.graph)
        self.relations += len(answer.graph.relations)
        if len(self.shown) < SHOWN:
            self.shown.append((answer.task.item.key, answer.task.name, answer.graph))


def run(
    inputs: Inputs, setup: Setup, log: PredictionLog, batch: int, jobs: int, step: Callable[[int], None]
) -> Summary:
    """Predicts what the log does not hold yet; `step` is told how many images each batch had."""
    summary = Summary()
    wanted = _not_done(inputs, log, summary, step)
    batches = iter(lambda: list(islice(wanted, batch)), [])
    for answers in _answers(batches, setup, jobs):
        log.append((a.task.item.key, a.task.name, a.graph) for a in answers if a.graph is not None)
        for answer in answers:
            summary.add(answer)
        step(len(answers))
    return summary


def _not_done(inputs: Inputs, log: PredictionLog, summary: Summary, step: Callable[[int], None]) -> Iterator[Task]:
    done = frozenset(log.done)
    for task in inputs:
        if task.item.key in done:
            summary.resumed += 1
            step(1)
        else:
            yield task


def _answers(batches: Iterator[list[Task]], setup: Setup, jobs: int) -> Iterator[list[Answer]]:
    if jobs <= 1:
        worker = _Worker(setup)
        yield from map(worker.answer, batches)
        return
    # fork would copy torch's threads in an unknown state; a started process is clean
    with ProcessPoolExecutor(jobs, get_context("spawn"), _start, (setup,)) as pool:
        waiting: list[Future[list[Answer]]] = []
        try:
            for some in batches:
                waiting.append(pool.submit(_answer, some))
                if len(waiting) > 2 * jobs:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for future in waiting:
                future.cancel()


class _Worker:
    """A model, loaded once, that answers batches and writes the files of each image."""

    def __init__(self, setup: Setup) -> None:
        from scenegpi.models.checkpoint import load_model
        from scenegpi.vision.detect import load_detector

        self.setup = setup
        if setup.threads:
            import torch

            torch.set_num_threads(setup.threads)
        detector = None if setup.detector is None else load_detector(setup.detector)
        self.engine = Engine(load_model(setup.model), detector, setup.choices)

    def answer(self, tasks: list[Task]) -> list[Answer]:
        outcomes = self.engine.run(task.item for task in tasks)
        answers = []
        for task, outcome in zip(tasks, outcomes, strict=True):
            graph, problem = outcome.graph, printable(outcome.problem)
            if graph is not None:
                try:
                    write_image(graph, self.setup.folder, task.name, self.setup.formats, task.item.photo)
                except DataError as error:
                    if self._is_about(error, task):  # the picture's photo; a full disk is another matter
                        graph, problem = None, str(error)
                    else:
                        raise
            answers.append(Answer(task, graph, problem, outcome.vocabulary, outcome.names, outcome.left_out))
        return answers

    @staticmethod
    def _is_about(error: DataError, task: Task) -> bool:
        return task.item.photo is not None and os.fspath(task.item.photo) == error.file


_worker: _Worker | None = None


def _start(setup: Setup) -> None:
    global _worker
    _worker = _Worker(setup)


def _answer(tasks: list[Task]) -> list[Answer]:
    assert _worker is not None
    return _worker.answer(tasks)
