"""Predicting a folder from the page: photos -> a run (`scenegpi.bulk`) -> a store, in a thread of its own.

It is what `scenegpi predict FOLDER` and `scenegpi index` do: a photo that was answered before, by its content, is not
read again; a server that is killed goes on from there. Photos that are dropped on the page are kept beside the run.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import Field

from scenegpi.bulk.job import Engine, open_log, run_images
from scenegpi.bulk.run_folder import PredictionLog
from scenegpi.bulk.run_inputs import Inputs
from scenegpi.bulk.workers import Setup
from scenegpi.data.images import SUFFIXES
from scenegpi.errors import DataError, SceneGPIError
from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph
from scenegpi.prediction import PredictOptions
from scenegpi.prediction.defaults import PHOTO
from scenegpi.prediction.finding import FinderSpec
from scenegpi.serve.library import Library
from scenegpi.serve.problems import BODY, one_line, problems
from scenegpi.serve.schemas import Strict
from scenegpi.serve.settings import Bounds
from scenegpi.store import Store

BATCH, MOST_FOLDERS = 4, 500
UNSAFE = re.compile(r"[^\w.() -]+")
log = logging.getLogger("scenegpi")


class RunRequest(Strict):
    """Which photos: those in a folder and below it; all where it is empty."""

    folder: Annotated[str, Field(max_length=1000)] = ""


class RunAnswer(Strict):
    """How far it is: `done` of `total` photos; `problem` says why it ended, `skipped` are photos that can't be read."""

    state: Literal["none", "running", "indexing", "done", "stopped", "failed"] = "none"
    done: int = 0
    total: int = 0
    skipped: int = 0
    problem: str = ""


class FolderList(Strict):
    """Folders with photos, and how many each has in it and below."""

    folders: dict[str, int]
    total: int


class Dropped(Strict):
    """A photo that was kept."""

    image: int
    name: str


class _StoppedError(Exception):
    """A person has stopped the run."""


class Running:
    """The routes, and the one run at a time.

    Args:
        library: whose photos are predicted; `library.work` is where everything goes.
        bounds: of one photo.
        model: that predicts; None for the one that uses photos.
        finder: finds boxes; None for the package's own.
        device: where the model runs.
    """

    def __init__(
        self, library: Library, bounds: Bounds, model: str | None, finder: FinderSpec | None, device: str = "cpu"
    ) -> None:
        assert library.work is not None
        self.library, self.bounds, self.work = library, bounds, library.work
        self._setup = Setup(
            model or PHOTO, finder, PredictOptions(), self.work / "predictions", formats=(), device=device
        )
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self.answer = RunAnswer()

    def router(self) -> APIRouter:
        """The routes."""
        router = APIRouter(tags=["run"])
        router.get("/api/folders")(self.folders)
        router.get("/api/runs")(self.state)
        router.post("/api/runs", responses=problems(404, 409))(self.start)
        router.delete("/api/runs")(self.stop)
        router.post("/api/dropped", responses=problems(507), openapi_extra=BODY)(self.drop)
        return router

    def close(self) -> None:
        """Ends what runs; what was answered is kept."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def folders(self) -> FolderList:
        """Folders of photos, below the one that the server was started with."""
        found = self.library.folders()
        return FolderList(folders=dict(list(found.items())[:MOST_FOLDERS]), total=len(self.library))

    def state(self) -> RunAnswer:
        """How far the run is."""
        return self.answer

    def start(self, request: RunRequest) -> RunAnswer:
        """Predicts and indexes photos; GET /api/runs tells how far it is."""
        files = self.library.files(request.folder)
        if not files:
            raise HTTPException(404, f"no photos in {request.folder!r:.200}")
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                raise HTTPException(409, "a run is under way")
            self._stop.clear()
            self.answer = RunAnswer(state="running", total=len(files))
            self._thread = threading.Thread(target=self._run, args=(files,), name="run", daemon=True)
            self._thread.start()
        return self.answer

    def stop(self) -> RunAnswer:
        """Ends the run after the photos at hand; what was answered is kept for the next one."""
        self._stop.set()
        return self.answer

    async def drop(self, request: Request, name: Annotated[str, Query(min_length=1, max_length=200)]) -> Dropped:
        """Keeps a photo, whose file is the body, among those of this server."""
        folder = self.library.dropped
        assert folder is not None
        plain = UNSAFE.sub("_", Path(name).name).strip(". ") or "photo.jpg"
        if Path(plain).suffix.lower() not in SUFFIXES:
            raise HTTPException(422, f"{plain!r:.100}: expected a photo, {', '.join(SUFFIXES)}")
        data = await request.body()
        target = next(path for path in _names(folder / plain) if not path.exists() or path.read_bytes() == data)
        try:
            with whole_file(target) as part:
                part.write_bytes(data)
                self.bounds.check_photo(part)
        except DataError as error:
            full = error.message.startswith("cannot be written")
            raise HTTPException(507 if full else 422, f"{plain}: {error.message}") from None
        return Dropped(image=self.library.add(target), name=self.library.file_key(target))

    def _run(self, files: list[Path]) -> None:
        try:
            self._predict(files)
            self._tell(state="done")
        except _StoppedError:
            self._tell(state="stopped")
        except SceneGPIError as error:
            self._tell(state="failed", problem=one_line(error))
        except Exception:
            log.exception("the run failed")
            self._tell(state="failed", problem="internal error (please report it)")

    def _tell(self, **news: Any) -> None:
        self.answer = self.answer.model_copy(update=news)

    def _predict(self, files: list[Path]) -> None:
        inputs, engine = Inputs(files, None), Engine(batch=BATCH)

        def step(number: int) -> None:
            self._tell(done=self.answer.done + number)
            if self._stop.is_set():
                raise _StoppedError

        with open_log(self._setup, engine, files, inputs) as opened:
            summary, _ = run_images(inputs, self._setup, engine, opened, step)
            self._tell(state="indexing", skipped=len(summary.skipped))
            Store(self.work / "store").add(self._graphs(opened, files))
        self.library.reopen()

    def _graphs(self, opened: PredictionLog, files: list[Path]) -> Iterator[SceneGraph]:
        """The answers to these photos, each called as its photo is called here."""
        sources = {os.path.abspath(path).encode(errors="backslashreplace").decode(): path for path in files}
        for row, graph in opened.predicted(sources):
            yield graph.replace(image_id=None, file=self.library.file_key(sources[row["source"]]))


def _names(path: Path) -> Iterator[Path]:
    """A path, and others like it."""
    yield path
    for k in range(2, 1_000_000):
        yield path.with_name(f"{path.stem}-{k}{path.suffix}")


def work_folder(path: Path | None) -> Path:
    """Where the runs of a served folder go by default: no two folders share one."""
    if path is None:
        return Path("out/studio/dropped")
    whole = path.resolve()
    digest = sha256(str(whole).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return Path("out/studio") / f"{whole.name or 'images'}-{digest}"
