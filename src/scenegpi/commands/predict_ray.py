"""The run of `scenegpi predict --engine ray`: shards of images through actors, on one machine or a cluster.

A shard is a number of images in a row. An actor holds one predictor; it reads the images of a shard, predicts them and
writes one file, whole or not at all: `shards/000012.jsonl` (or `.parquet`), pictures and exports in `shards/000012/`,
and `shards/000012.skipped.txt` where images were skipped. A shard whose file exists is done. So nothing is lost and
nothing done twice when an actor, a machine or the whole run is killed; ray restarts what it has lost.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from scenegpi.commands.predict_inputs import Inputs
from scenegpi.commands.predict_output import SHARDS, prediction_lines
from scenegpi.commands.predict_run import Answer, Setup, Summary, Worker
from scenegpi.errors import DataError
from scenegpi.files import reason, tidy, whole_file

Form = Literal["jsonl", "parquet"]
ENVIRONMENT = {"RAY_worker_niceness": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}
"""Ray's, unless the user has set them: workers don't wait for whatever else runs here; no log among our lines."""
SHARDS_PER_BLOCK = 8
"""Shards that ray schedules together where there are many: of a billion images it must not count every one."""


def shard_settings(inputs: Inputs, form: Form, size: int) -> dict[str, Any]:
    """What shards of a run that is continued must have in common: they are counted, so the images must be the same."""
    digest = blake2b(digest_size=8)
    for photo in inputs.photos:
        digest.update(f"{photo.as_posix()}\n".encode(errors="replace"))
    if inputs.boxes is not None:
        path = Path(inputs.boxes.path)
        for file in [path, *(sorted(path.iterdir()) if path.is_dir() else [])]:
            digest.update(f"{file} {0 if file.is_dir() else file.stat().st_size}\n".encode(errors="replace"))
    return {"engine": "ray", "shard": size, "form": form, "images": len(inputs), "inputs": digest.hexdigest()}


def run_ray(
    inputs: Inputs, setup: Setup, form: Form, size: int, jobs: int, address: str | None, step: Callable[[int], None]
) -> Summary:
    """Predicts the shards that are not done yet; `step` is told how many images each of them has."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError:
        raise DataError("--engine", "ray is missing: pip install 'scenegpi[ray]'") from None
    summary = Summary()
    shards = _Shards(inputs, setup, form, size)
    wanted = list(shards.waiting(summary, step))
    if not wanted:
        return summary
    _connect(ray, jobs, address)
    try:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        blocks = max(min(len(wanted), 64 * jobs), len(wanted) // SHARDS_PER_BLOCK)
        rows = ray.data.from_items([{"shard": k} for k in wanted], override_num_blocks=blocks)
        found = rows.map_batches(
            ShardActor,
            fn_constructor_args=(ray.put(shards),),
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=jobs),
            num_cpus=1,
        )
        for some in found.iter_batches(batch_size=None, prefetch_batches=0):  # as they come, for the progress
            for line, images in zip(some["summary"], some["images"], strict=True):
                summary.join(Summary.from_json(str(line)))
                step(int(images))
    finally:
        ray.shutdown()
        if shards.folder.exists():
            tidy(shards.folder)  # actors that were killed leave half-written files
    return summary


def _connect(ray: Any, jobs: int, address: str | None) -> None:
    """To a cluster, or to one that is started on this machine and ends with this process."""
    here = {"address": "local", "num_cpus": jobs, "include_dashboard": False}
    for handler in logging.getLogger("ray.data").handlers:
        if type(handler).__module__.startswith("ray.") and isinstance(handler, logging.StreamHandler):  # not the user's
            handler.setLevel(logging.ERROR)
    if address:
        _check_answers(address)
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **({"address": address} if address else here))
    except (ConnectionError, ValueError, RuntimeError) as error:
        where = f"--address {address}" if address else "--engine ray"
        raise DataError(where, f"ray does not start or answer ({str(error).partition(chr(10))[0]})") from None


def _check_answers(address: str) -> None:
    """DataError where no machine answers at HOST:PORT: ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "://" in address:
        return
    try:
        socket.create_connection((host, int(port)), 10).close()
    except (OSError, OverflowError) as error:
        said = reason(error) if isinstance(error, OSError) else str(error)
        raise DataError("--address", f"{address}: no cluster answers there ({said})") from None


class _Shards:
    """The shards of a run and their files; travels to every actor."""

    def __init__(self, inputs: Inputs, setup: Setup, form: Form, size: int) -> None:
        self.inputs, self.setup, self.form, self.size = inputs, setup, form, size
        self.folder = setup.folder.resolve() / SHARDS
        self.here = Path.cwd()

    def file(self, k: int) -> Path:
        return self.folder / f"{k:06d}.{self.form}"

    def place(self, k: int) -> tuple[int, int]:
        """First image of a shard, and the first that is not of it."""
        return k * self.size, min((k + 1) * self.size, len(self.inputs))

    def waiting(self, summary: Summary, step: Callable[[int], None]) -> Iterator[int]:
        """Shards that are not done; those that are count as resumed."""
        for k in range(-(-len(self.inputs) // self.size)):
            if self.file(k).exists():
                start, stop = self.place(k)
                summary.resumed += stop - start
                step(stop - start)
            else:
                yield k


class ShardActor:
    """Does shards, one at a time, with one predictor."""

    def __init__(self, shards: Any) -> None:
        import ray

        self.shards: _Shards = ray.get(shards) if isinstance(shards, ray.ObjectRef) else shards
        os.chdir(self.shards.here)  # paths of inputs may be relative
        self.worker = Worker(replace(self.shards.setup, threads=1))

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        numbers = [int(k) for k in batch["shard"]]
        done = [self.shard(k) for k in numbers]
        images = [stop - start for start, stop in map(self.shards.place, numbers)]
        return {"summary": [each.to_json() for each in done], "images": images}

    def shard(self, k: int) -> Summary:
        """Predicts a shard and writes its files; what another actor finished before it died is not done again."""
        summary, file = Summary(), self.shards.file(k)
        start, stop = self.shards.place(k)
        if file.exists():
            summary.resumed = stop - start
            return summary
        folder = file.with_suffix("")
        self.worker.setup = replace(self.shards.setup, folder=folder)
        answers = self.worker.answer(list(self.shards.inputs.part(start, stop)))
        for answer in answers:
            summary.add(answer)
        if summary.skipped:
            with whole_file(folder.with_suffix(".skipped.txt")) as part:
                part.write_text("".join(f"{line}\n" for line in summary.skipped), encoding="utf-8", errors="replace")
        with whole_file(file) as part:
            _write(part, answers, self.shards.form)
        return summary


def _write(part: Path, answers: list[Answer], form: Form) -> None:
    rows = [(a.entry.item.key, a.entry.name, a.prediction.graph) for a in answers if a.prediction.graph is not None]
    lines = list(prediction_lines(rows, set()))
    if form == "jsonl":
        part.write_text("".join(lines), encoding="utf-8", errors="replace")
        return
    import pyarrow
    import pyarrow.parquet

    columns = {
        "source": pyarrow.array([source for source, _, _ in rows], pyarrow.string()),
        "name": pyarrow.array([name for _, name, _ in rows], pyarrow.string()),
        "box_count": pyarrow.array([len(graph) for _, _, graph in rows], pyarrow.int32()),
        "relation_count": pyarrow.array([len(graph.relations) for _, _, graph in rows], pyarrow.int32()),
        "graph": pyarrow.array([line.rstrip("\n") for line in lines], pyarrow.large_string()),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), part)
