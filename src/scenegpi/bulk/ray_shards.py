"""The run of `scenegpi predict --engine ray`: shards of images, predicted by actors on one machine or a cluster.

A shard is a number of consecutive images. An actor holds one predictor; it reads the images of a shard, predicts them
and writes one file, whole or not at all: `shards/000012.jsonl` (or `.parquet`), pictures and exports in
`shards/000012/`, and `shards/000012.skipped.txt` where images were skipped. A shard whose file holds all its images is
done. So nothing is lost or done twice when an actor, a machine or the whole run is killed; ray restarts lost actors. A
shard with skipped images is done again by the next run, which names them or finds them mended.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from traceback import clear_frames
from typing import Any

from scenegpi.bulk.digests import file_digest, image_digest, photo_digest
from scenegpi.bulk.journal import line_of
from scenegpi.bulk.manifest import SHARDS
from scenegpi.bulk.run_folder import PredictionLog, prediction_lines
from scenegpi.bulk.run_inputs import Entry, Inputs
from scenegpi.bulk.summary import Summary, rows_of
from scenegpi.bulk.workers import Engine, Form, Setup, Worker
from scenegpi.errors import DataError, SceneGPIError, require
from scenegpi.files import reason, tidy, whole_file

ENVIRONMENT = {"RAY_worker_niceness": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}
"""Ray settings, unless the user has set them: workers of normal priority, and no ray log in our output."""
SHARDS_PER_BLOCK = 8
"""Number of shards that ray schedules together if there are many, as it can't track each of a million."""


def shard_settings(inputs: Inputs, form: Form, size: int) -> dict[str, Any]:
    """Settings that must be the same to continue a run: shards are numbered, so the images must not change."""
    digest = blake2b(digest_size=8)
    for photo in inputs.photos:
        digest.update(f"{os.path.abspath(photo)}\n".encode(errors="backslashreplace"))
    if inputs.boxes is not None:
        path = Path(inputs.boxes.path)
        for file in sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]:
            digest.update(f"{file} {file_digest(file)}\n".encode(errors="backslashreplace"))
    return {"engine": "ray", "shard": size, "form": form, "images": len(inputs), "inputs": digest.hexdigest()}


def run_ray(inputs: Inputs, setup: Setup, engine: Engine, log: PredictionLog, step: Callable[[int], None]) -> Summary:
    """Predicts the shards that are not done yet; `step` is told the number of images of each."""
    log.manifest.claim([SHARDS])
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    require("--engine ray", "ray", "ray", "pyarrow")
    import ray
    import ray.data

    summary, jobs = Summary(), engine.jobs
    shards = Shards(inputs, setup, engine.form, engine.shard, log.settings_digest)
    wanted = list(shards.waiting(summary, step))
    if not wanted:
        return summary
    _connect(ray, jobs, engine.address)
    try:
        ray.data.DataContext.get_current().enable_progress_bars = False
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
            for done, images, problem in zip(some["summary"], some["images"], some["problem"], strict=True):
                if problem:
                    raise SceneGPIError(str(problem))
                summary.join(done)
                step(int(images))
    except BaseException as error:
        clear_frames(error.__traceback__)  # ray's iterators end with their frames, and would start another ray later
        if isinstance(error, ray.exceptions.RayError):
            raise DataError("--engine ray", str(error).strip().rpartition("\n")[2]) from None
        raise
    finally:
        ray.shutdown()
        if shards.folder.exists():
            tidy(shards.folder)  # killed actors leave half-written files
    return summary


def _connect(ray: Any, jobs: int, address: str | None) -> None:
    """Connects to a cluster, or starts one on this machine, which ends with this process."""
    here = {"address": "local", "num_cpus": jobs, "include_dashboard": False}
    for handler in logging.getLogger("ray.data").handlers:
        if type(handler).__module__.startswith("ray.") and isinstance(handler, logging.StreamHandler):  # not the user's
            handler.setLevel(logging.CRITICAL)
    if address:
        _check_answers(address)
    stop = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **({"address": address} if address else here))
    except Exception as error:  # ray raises a plain Exception for a node that takes too long
        where = f"--address {address}" if address else "--engine ray"
        raise DataError(where, f"ray does not start or respond ({str(error).partition(chr(10))[0]})") from None
    if stop is not None:
        signal.signal(signal.SIGTERM, stop)  # ray's own handler prints a page of text and exits with another code


def _check_answers(address: str) -> None:
    """DataError if no machine answers at HOST:PORT: ray would try for minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "://" in address:
        return
    try:
        socket.create_connection((host, int(port)), 10).close()
    except (OSError, OverflowError) as error:
        said = reason(error) if isinstance(error, OSError) else str(error)
        raise DataError("--address", f"{address}: no cluster answers there ({said})") from None


class Shards:
    """The shards of a run and their files; sent to every actor."""

    def __init__(self, inputs: Inputs, setup: Setup, form: Form, size: int, settings: str) -> None:
        self.inputs, self.setup, self.form, self.size, self.settings = inputs, setup, form, size, settings
        self.folder = setup.folder.resolve() / SHARDS
        self.here = Path.cwd()

    def file(self, k: int) -> Path:
        return self.folder / f"{k:06d}.{self.form}"

    def place(self, k: int) -> tuple[int, int]:
        """The first image of a shard, and the first one after it."""
        return k * self.size, min((k + 1) * self.size, len(self.inputs))

    def is_done(self, k: int) -> bool:
        """Whether the file of a shard holds all its images, none skipped, and its photos have not changed."""
        file, (start, stop) = self.file(k), self.place(k)
        if not file.exists():
            return False
        try:
            same = list(map(_same_photo, _lines(file)))
            return len(same) == stop - start and all(same)
        except (ValueError, KeyError, TypeError, OSError):  # not our file, or damaged
            return False

    def waiting(self, summary: Summary, step: Callable[[int], None]) -> Iterator[int]:
        """Shards that are not done; the others count as resumed."""
        for k in range(-(-len(self.inputs) // self.size)):
            if self.is_done(k):
                start, stop = self.place(k)
                summary.resumed += stop - start
                step(stop - start)
            else:
                yield k


class ShardActor:
    """Predicts shards, one at a time, with one predictor."""

    def __init__(self, shards: Any) -> None:
        import ray

        self.shards: Shards = ray.get(shards) if isinstance(shards, ray.ObjectRef) else shards
        os.chdir(self.shards.here)  # paths of inputs may be relative
        self._worker: Worker | None = None

    @property  # a cached one has a lock, which ray cannot send
    def worker(self) -> Worker:
        """Created for the first shard, whose result can carry an error."""
        self._worker = self._worker or Worker(replace(self.shards.setup, threads=1))
        return self._worker

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        (k,) = map(int, batch["shard"])
        start, stop = self.shards.place(k)
        try:
            done, problem = self.shard(k), ""
        except SceneGPIError as error:  # as text: ray drops an error's cause
            done, problem = Summary(), str(error)
        return {"summary": [done], "images": [stop - start], "problem": [problem]}

    def shard(self, k: int) -> Summary:
        """Predicts a shard and writes its files, unless another actor finished it before it died."""
        summary, file = Summary(), self.shards.file(k)
        start, stop = self.shards.place(k)
        if self.shards.is_done(k):
            summary.resumed = stop - start
            return summary
        folder = file.with_suffix("")
        self.worker.setup = replace(self.shards.setup, folder=folder)
        entries = [
            replace(entry, digest=image_digest(entry.item.photo, entry.item.graph, self.shards.settings))
            for entry in self.shards.inputs.part(start, stop)
        ]
        answers = self.worker.answer(entries)
        for entry in answers:
            summary.add(entry)
        skipped = folder.with_suffix(".skipped.txt")
        skipped.unlink(missing_ok=True)
        if summary.skipped:
            with whole_file(skipped) as part:
                part.write_text("".join(f"{line}\n" for line in summary.skipped), encoding="utf-8", errors="replace")
        with whole_file(file) as part:
            _write(part, answers, self.shards.form)
        return summary


def _write(part: Path, answers: list[Entry], form: Form) -> None:
    rows = rows_of(answers)
    lines = list(map(line_of, prediction_lines(rows, set())))
    if form == "jsonl":
        part.write_bytes(b"".join(lines))
        return
    import pyarrow
    import pyarrow.parquet

    columns = {
        "source": pyarrow.array([row.source for row in rows], pyarrow.string()),
        "name": pyarrow.array([row.name for row in rows], pyarrow.string()),
        "box_count": pyarrow.array([len(row.graph) for row in rows], pyarrow.int32()),
        "relation_count": pyarrow.array([len(row.graph.relations) for row in rows], pyarrow.int32()),
        "graph": pyarrow.array([line.decode().rstrip("\n") for line in lines], pyarrow.large_string()),
    }
    pyarrow.parquet.write_table(pyarrow.table(columns), part)


def _lines(file: Path) -> Iterator[bytes]:
    """The lines of a shard's file."""
    if file.suffix == ".jsonl":
        with file.open("rb") as lines:
            yield from (line for line in lines if line.endswith(b"\n"))
        return
    import pyarrow.parquet

    for batch in pyarrow.parquet.ParquetFile(file).iter_batches(columns=["graph"]):
        yield from (line.encode() for line in batch.column("graph").to_pylist())


def _same_photo(line: bytes) -> bool:
    """Whether the photo of a line has not changed; true for a line without a photo."""
    if b'"photo":' not in line:  # before parsing: there are many lines
        return True
    row = json.loads(line)
    return "photo" not in row or str(row["digest"]).partition(".")[0] == photo_digest(Path(row["photo"]))
