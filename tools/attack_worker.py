"""Reads one file in a process that may die of it: memory is limited, the clock is watched, the end is classified.

| outcome | what it means |
|---|---|
| read | every graph, array or pixel passed all checks again |
| defects | so did the rest; what was left out is in the report |
| refused | DataError: one line, printable, that names the file |
| FAULT | any other exception, a warning, a record that breaks the rules, a message of several lines |
| MEMORY | more than GROWTH bytes beyond what the process had |
| HANG | more than SECONDS of work, or WAIT of waiting |
| CRASH | the process died |
"""

from __future__ import annotations

import logging
import multiprocessing
import resource
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from scenegpi import SceneGraph
from scenegpi.checks import MAX_COORDINATE
from scenegpi.data import DataError, open_dataset, statistics, validate
from scenegpi.data.class_names import read_names_file
from scenegpi.data.distributions import read_distributions
from scenegpi.data.evaluation_npz import EvaluationNpz
from scenegpi.data.images import photo_size
from scenegpi.data.jsonl import json_lines
from scenegpi.data.video import MAX_PIXELS, frames
from scenegpi.store import Store
from scenegpi.training.recipes import read_toml
from scenegpi.vision.photos import open_photo
from scenegpi.words.vectors import load_words

GOOD, BAD = ("read", "defects", "refused"), ("FAULT", "MEMORY", "HANG", "CRASH")
SECONDS, WAIT = 40, 600
GROWTH = 450 * 2**20
ADDRESS_SPACE = 6 * 2**30


def examine(how: str, path: Path) -> str:
    """What came of reading it: one of GOOD. Raises only what should never come."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ResourceWarning)  # a file of JSON lines stays open while it is used
            return READERS[how](path)
    except DataError as error:
        line = str(error)
        # paths of other files, as in "no such file", begin with the same folder
        if not line.isprintable() or not line.startswith(str(path.parent)):
            raise AssertionError(f"not one printable line with the file's name: {line!r:.300}") from None
        return "refused"


def _read_data(path: Path) -> str:
    report = validate(path)
    dataset = open_dataset(path)
    for graph in dataset:
        fields = {name: getattr(graph, name) for name in SceneGraph.__slots__}
        assert SceneGraph(**fields) == graph, f"image {graph.image_id!r} changed when it was checked again"
        assert np.abs(graph.boxes).max(initial=0) <= MAX_COORDINATE
    for line in json_lines(dataset):
        line.encode()
    if all(graph.vocabulary == dataset.vocabulary for graph in dataset):
        statistics(dataset).to_dict()
    for defect in report.defects[:1000]:
        assert str(defect).isprintable()
    return "defects" if report.errors else "read"


def _read_evaluation(path: Path) -> str:
    for task in ("predcls", "sgcls", "sgdet"):
        file = EvaluationNpz(path, task)
        for i in range(len(file)):
            for graph in (file.target(i), file.prediction(i)):
                SceneGraph(**{name: getattr(graph, name) for name in SceneGraph.__slots__})
    return "read"


def _read_distributions(path: Path) -> str:
    file = read_distributions(path)
    for rows in (file.label_dist, file.pair_dist):
        assert rows is None or np.isfinite(rows).all()
    return "read"


def _read_words(path: Path) -> str:
    vectors = load_words(path)
    known = next((word for word in vectors.words if vectors.vector(word).any()), None)
    assert known is None or all(np.isfinite(cosine) for _, cosine in vectors.neighbours(known, 3))
    return "read"


def _read_names(path: Path) -> str:
    read_names_file(path)
    return "read"


def _read_photo(path: Path) -> str:
    width, height = photo_size(path)
    photo = open_photo(path)
    assert photo.dtype == np.uint8
    assert photo.shape[2] == 3
    assert (width > height) == (photo.shape[1] > photo.shape[0]) or abs(width - height) < 8
    return "read"


def _read_store(path: Path) -> str:
    """Searched, shown and added to: what was there stays."""
    store = Store(path)
    before = len(store)
    answer = store.search("* * *", limit=100)
    graphs = store.graphs(hit.image for hit in answer.hits)
    store.add([SceneGraph([[0, 0, 9, 9]], ["man"], next(iter(graphs.values())).vocabulary, image_id="new")])
    assert len(store) == before + 1, f"{before} images and one more are {len(store)}"
    return "read"


def _read_video(path: Path) -> str:
    for frame in frames(path):
        height, width, _ = frame.photo.shape
        assert width * height <= MAX_PIXELS
    return "read"


def _read_toml(path: Path) -> str:
    read_toml(path)
    return "read"


READERS = {name.removeprefix("_read_"): reader for name, reader in globals().items() if name.startswith("_read_")}


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _work(connection: Connection) -> None:
    import av
    import duckdb  # noqa: F401, before the memory is counted

    av.logging.set_level(None)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    logging.getLogger("scenegpi").setLevel(logging.ERROR)
    base = _peak()
    while (case := connection.recv()) is not None:
        start = time.process_time()
        try:
            answer = examine(*case), ""
        except BaseException as error:
            answer = "FAULT", f"{type(error).__name__}: {error}"[:300]
        if _peak() - base > GROWTH:
            answer = "MEMORY", f"{(_peak() - base) // 2**20} MB ({answer[0]} {answer[1]})"
        if time.process_time() - start > SECONDS:
            answer = "HANG", f"{time.process_time() - start:.0f} s of work ({answer[0]} {answer[1]})"
        connection.send(answer)


class Watcher:
    """A worker process, replaced when it dies, takes too long or too much."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("fork")
        self._start()

    def _start(self) -> None:
        self.connection, other = self.context.Pipe()
        self.process = self.context.Process(target=_work, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def ask(self, how: str, path: Path) -> tuple[str, str]:
        """Outcome and detail of reading `path`."""
        try:
            self.connection.send((how, path))
            if self.connection.poll(WAIT):
                answer: tuple[str, str] = self.connection.recv()
                if answer[0] != "MEMORY":
                    return answer
            else:
                answer = "HANG", f"no answer in {WAIT} s"
        except (EOFError, OSError):
            answer = "CRASH", ""
        self.process.kill()
        self.process.join()
        if answer[0] == "CRASH":
            answer = "CRASH", f"exit code {self.process.exitcode}"
        self._start()
        return answer

    def close(self) -> None:
        """Ends the worker."""
        self.connection.send(None)
        self.process.join(5)
