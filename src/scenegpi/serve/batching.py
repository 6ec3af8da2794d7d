"""Predictions for many clients at once: one thread, one `Predictor`; waiting requests form a batch.

While a batch is predicted, further requests wait; the next batch takes all of them (at most `batch`). So a single
request is answered at once, and fifty cost little more than reading their pixels. The last photos are kept in encoded
form: when a box is moved, the photo is not encoded again.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path
from typing import Any

from scenegpi.errors import DataError
from scenegpi.prediction import Item, Predictor
from scenegpi.prediction.finding import FinderSpec
from scenegpi.serve.settings import Bounds
from scenegpi.vision.photos import EncodedPhoto

KEPT_MODELS = 4
KEPT_PHOTOS, KEPT_BYTES = 16, 128 * 2**20
"""Maximum number of photos kept, and maximum bytes of their pixels."""


class FullError(Exception):
    """Too many requests are waiting."""


@dataclass
class _Job:
    model: str
    item: Item
    ends: float
    own: Callable[[Predictor, Item], Any] | None = None
    future: Future[Any] = field(default_factory=Future)


class Predictions:
    """Answers requests in one thread, from `start` to `stop`."""

    def __init__(self, bounds: Bounds, device: str = "cpu", finder: FinderSpec | None = None) -> None:
        self.bounds = bounds
        self._waiting: queue.Queue[_Job | None] = queue.Queue(bounds.queue)
        self._predictor = lru_cache(KEPT_MODELS)(lambda model: Predictor(model, finder, device=device))
        self._thread = threading.Thread(target=self._run, name="predictions", daemon=True)
        self._photos = EncodedPhotos()
        self.batches = 0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Answers the waiting requests, and ends."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join()

    def submit(self, model: str, item: Item, own: Callable[[Predictor, Item], Any] | None = None) -> Future[Any]:
        """A future `Prediction`, or the result of `own(predictor, item)`; FullError if too many are waiting."""
        job = _Job(model, item, time.monotonic() + self.bounds.seconds, own)
        try:
            self._waiting.put_nowait(job)
        except queue.Full:
            raise FullError from None
        return job.future

    def _run(self) -> None:
        while True:
            jobs: list[_Job | None] = [self._waiting.get()]
            while len(jobs) < self.bounds.batch:
                try:
                    jobs.append(self._waiting.get_nowait())
                except queue.Empty:
                    break
            now = time.monotonic()
            groups: dict[str, list[_Job]] = {}
            for job in filter(None, jobs):
                if job.ends < now:  # no client is waiting for it any longer
                    job.future.cancel()
                elif job.future.set_running_or_notify_cancel():
                    groups.setdefault(job.model, []).append(job)
            for model, some in groups.items():
                self._answer(model, some)
            if None in jobs:
                return

    def _answer(self, model: str, jobs: list[_Job]) -> None:
        self.batches += 1
        try:
            predictor = self._predictor(model)
            streamed = [job for job in jobs if job.own is None]
            predictions = predictor.stream(self._encoded(job.item) for job in streamed)
            for job, prediction in zip(streamed, predictions, strict=True):
                job.future.set_result(prediction)
        except Exception as error:
            self._fail(jobs, error)
        for job in jobs:
            if job.own is not None and not job.future.done():
                try:
                    job.future.set_result(job.own(predictor, self._encoded(job.item)))
                except Exception as error:
                    self._fail([job], error)

    def _encoded(self, item: Item) -> Item:
        return replace(item, photo=self._photos.of(item.photo))

    def _fail(self, jobs: list[_Job], error: Exception) -> None:
        for job in jobs:
            if not job.future.done():
                job.future.set_exception(error)


class EncodedPhotos:
    """The last photos, by content and name; not thread-safe."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], EncodedPhoto] = OrderedDict()

    def of(self, photo: Any) -> Any:
        """A file as an encoded photo; unchanged if it cannot be read, which the predictor reports."""
        if not isinstance(photo, Path):
            return photo
        try:
            info = photo.stat()
            key = _digest(photo, info.st_mtime_ns, info.st_size, info.st_ino), photo.name
            found = self._kept.pop(key, None) or EncodedPhoto.of(photo)
        except (OSError, DataError):
            return photo
        self._kept[key] = found
        while len(self._kept) > 1 and (len(self._kept) > KEPT_PHOTOS or self.bytes > KEPT_BYTES):
            self._kept.popitem(last=False)
        return found

    @property
    def bytes(self) -> int:
        """Bytes of all pixels."""
        return sum(each.pixels.nbytes for each in self._kept.values())


@lru_cache(4 * KEPT_PHOTOS)
def _digest(path: Path, *seen: int) -> str:
    """A digest of the content; a file with unchanged time, size and inode is not read again."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
