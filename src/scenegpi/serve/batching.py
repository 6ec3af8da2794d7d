"""Predictions for many clients at once: one thread, the project's one `Predictor`, requests that wait go together.

While a batch is being predicted, further requests wait; the next batch takes all of them (at most `batch`). So a lone
request is answered at once, and fifty cost little more than their pixels.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from scenegpi.models.build import SceneModel
from scenegpi.models.checkpoint import load_model
from scenegpi.prediction import Item, Prediction, PredictOptions, Predictor
from scenegpi.serve.settings import Bounds

KEPT_PREDICTORS, KEPT_MODELS = 32, 4
log = logging.getLogger("scenegpi")


class FullError(Exception):
    """More requests wait than may."""


@dataclass
class _Job:
    model: str
    options: PredictOptions
    item: Item
    ends: float
    own: Callable[[Predictor, Item], Any] | None = None
    future: Future[Any] = field(default_factory=Future)


class Predictions:
    """Answers requests in one thread of its own, from `start` to `stop`.

    Args:
        bounds: how many may wait, and for how long.
        device: where models run.
    """

    def __init__(self, bounds: Bounds, device: str = "cpu") -> None:
        self.bounds, self.device = bounds, device
        self._waiting: queue.Queue[_Job | None] = queue.Queue(bounds.queue)
        self._models: OrderedDict[str, SceneModel] = OrderedDict()
        self._predictors: OrderedDict[tuple[str, PredictOptions], Predictor] = OrderedDict()
        self._thread = threading.Thread(target=self._run, name="predictions", daemon=True)
        self.batches = 0

    def start(self) -> None:
        """Begins to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answers what waits, and ends."""
        if self._thread.is_alive():
            self._waiting.put(None)
            self._thread.join()

    def submit(
        self,
        model: str,
        options: PredictOptions,
        item: Item,
        own: Callable[[Predictor, Item], Any] | None = None,
    ) -> Future[Any]:
        """A `Prediction` to come, or what `own` makes of the predictor and the item; FullError if too many wait."""
        job = _Job(model, options, item, time.monotonic() + self.bounds.seconds, own)
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
            groups: dict[tuple[str, PredictOptions], list[_Job]] = {}
            for job in jobs:
                if job is None:
                    continue
                if job.ends < now:  # nobody waits for it any more
                    job.future.cancel()
                elif job.future.set_running_or_notify_cancel():
                    groups.setdefault((job.model, job.options), []).append(job)
            for key, some in groups.items():
                self._answer(key, some)
            if None in jobs:
                return

    def _answer(self, key: tuple[str, PredictOptions], jobs: list[_Job]) -> None:
        self.batches += 1
        try:
            predictor = self._predictor(*key)
            streamed = [job for job in jobs if job.own is None]
            predictions = predictor.stream(job.item for job in streamed)
            for job, prediction in zip(streamed, predictions, strict=True):
                job.future.set_result(prediction)
        except Exception as error:
            self._fail(jobs, error)
        for job in jobs:
            if job.own is not None and not job.future.done():
                try:
                    job.future.set_result(job.own(predictor, job.item))
                except Exception as error:
                    self._fail([job], error)

    def _fail(self, jobs: list[_Job], error: Exception) -> None:
        for job in jobs:
            if not job.future.done():
                job.future.set_exception(error)

    def _predictor(self, model: str, options: PredictOptions) -> Predictor:
        """Kept, for a client that moves a box asks again and again."""
        key = (model, options)
        if key not in self._predictors:
            if model not in self._models:
                self._models[model] = load_model(model)
            self._models.move_to_end(model)
            self._predictors[key] = Predictor(self._models[model], options=options, device=self.device)
        self._predictors.move_to_end(key)
        while len(self._predictors) > KEPT_PREDICTORS:
            self._predictors.popitem(last=False)
        while len(self._models) > KEPT_MODELS:
            gone, _ = self._models.popitem(last=False)
            for other in [key for key in self._predictors if key[0] == gone]:
                del self._predictors[other]
        return self._predictors[key]


__all__ = ["FullError", "Prediction", "Predictions"]
