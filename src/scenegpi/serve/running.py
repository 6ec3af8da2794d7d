"""Predicting a folder from the page: photos -> a run (`scenegpi.bulk`) -> a store, in a separate thread.

The same as `scenegpi predict FOLDER` and `scenegpi index`: a photo with the same content is not predicted again, and a
server that was killed continues from there. Photos dropped on the page are kept next to the run.
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

from scenegpi.bulk.digests import photo_part
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
from scenegpi.store.change import Indexed
from scenegpi.vocabulary import Vocabulary

BATCH, MOST_FOLDERS = 4, 500
UNSAFE = re.compile(r"[^\w.() -]+")
log = logging.getLogger("scenegpi")


class RunRequest(Strict):
    """The photos to predict: those in a folder and below; all by default."""

    folder: Annotated[str, Field(max_length=1000)] = ""


class RunAnswer(Strict):
    """The state of the run: `done` of `total` photos, `skipped` ones can't be read; `problem` says why it failed."""

    state: Literal["none", "running", "indexing", "done", "stopped", "failed"] = "none"
    done: int = 0
    total: int = 0
    skipped: int = 0
    problem: str = ""


class FolderList(Strict):
    """Folders with photos, and the number of photos in each and below."""

    folders: dict[str, int]
    total: int


class Dropped(Strict):
    """A photo that was kept."""

    image: int
    name: str


class _StoppedError(Exception):
    """The run was stopped from the page."""


class Running:
    """The routes, and at most one run at a time, over a library's photos; everything is written to `library.work`."""

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
        self.router = APIRouter(tags=["run"])
        self.router.get("/api/folders")(self.folders)
        self.router.get("/api/runs")(self.state)
        self.router.post("/api/runs", responses=problems(404, 409))(self.start)
        self.router.delete("/api/runs")(self.stop)
        self.router.post("/api/dropped", responses=problems(507), openapi_extra=BODY)(self.drop)

    def close(self) -> None:
        """Ends the run; what was predicted is kept."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def folders(self) -> FolderList:
        """Folders of photos, below the one that the server was started with."""
        found = self.library.folders()
        return FolderList(folders=dict(list(found.items())[:MOST_FOLDERS]), total=len(self.library))

    def state(self) -> RunAnswer:
        """The state of the run."""
        return self.answer

    def start(self, request: RunRequest) -> RunAnswer:
        """Predicts and indexes photos; GET /api/runs reports progress."""
        files = self.library.files(request.folder)
        if not files:
            raise HTTPException(404, f"no photos in {request.folder!r:.200}")
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                raise HTTPException(409, "a run is in progress")
            self._stop.clear()
            self.answer = RunAnswer(state="running", total=len(files))
            self._thread = threading.Thread(target=self._run, args=(files,), name="run", daemon=True)
            self._thread.start()
        return self.answer

    def stop(self) -> RunAnswer:
        """Ends the run after the current photos; what was predicted is kept for the next run."""
        self._stop.set()
        return self.answer

    async def drop(self, request: Request, name: Annotated[str, Query(min_length=1, max_length=200)]) -> Dropped:
        """Adds a photo (the body of the request) to those of this server."""
        folder = self.library.dropped
        assert folder is not None
        plain = UNSAFE.sub("_", Path(name).name).strip(". ") or "photo.jpg"
        if Path(plain).suffix.lower() not in SUFFIXES:
            raise HTTPException(422, f"{plain!r:.100}: expected a photo, {', '.join(SUFFIXES)}")
        data = await request.body()
        names = (plain, *(f"{Path(plain).stem}-{k}{Path(plain).suffix}" for k in range(2, 10_000)))
        free = (folder / each for each in names)
        target = next(path for path in free if not path.exists() or path.read_bytes() == data)
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

    def _graphs(self, opened: PredictionLog, files: list[Path]) -> Iterator[Indexed]:
        """The predictions for these photos with the photos' digests, each with the key of its photo as its file; an
        empty graph where the store holds the answer to a photo that can't be read any more."""
        sources = {os.path.abspath(path).encode(errors="backslashreplace").decode(): path for path in files}
        keys = {source: self.library.file_key(path) for source, path in sources.items()}
        for row, graph in opened.predicted(sources):
            yield graph.replace(image_id=None, file=keys.pop(row["source"])), photo_part(row["digest"])
        for key in keys.values():
            if self.library.store is not None and self.library.store.number(key) is not None:
                yield SceneGraph([], [], Vocabulary(()), file=key)


def work_folder(path: Path | None) -> Path:
    """The default folder for the runs of a served folder; no two folders share one."""
    if path is None:
        return Path("out/studio/dropped")
    whole = path.resolve()
    digest = sha256(str(whole).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return Path("out/studio") / f"{whole.name or 'images'}-{digest}"
