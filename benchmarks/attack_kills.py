"""Kills at random moments: `scenegpi train` and `scenegpi predict` are stopped, go on, and end as if never disturbed.

A training run (drawn scenes, a small vision stage, baseline, context, calibration) and a prediction run (the photos of
those scenes by that model) are done once without a disturbance. Then each is started anew, again and again, and
stopped by SIGKILL, SIGTERM or SIGINT up to KILLS times, at moments drawn from the time that the whole took; after each
stop it is told to go on. At the end every file must have the bytes of the undisturbed run, except for the seconds in
logs: no image lost or doubled, no half-written file left.

Commands run in children forked from a process that has imported everything, so that the moments fall on work and not
on imports.
"""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from scenegpi.paper.rendered import render_folder

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
KILLS = 4
SECONDS = 1800
NEVER = 1e9
CONFIG = """
half = true
[model.vision.features]
photo_size = 32
[model.vision.head]
hidden = 16
[model.baseline]
hidden = 16
embedding = 8
rank = 4
[model.network]
hidden = 12
phi = 10
alpha = 9
[fit]
epochs = 2
folds = 2
[optim]
batch = 8
warmup = 1
patience = 2
[baseline]
epochs = 3
[context]
epochs = 3
"""


class Launcher:
    """A process that runs commands in forked children, one at a time."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self.connection, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other,))
        self.process.start()
        other.close()

    def run(self, words: list[str], log: Path, delay: float = NEVER, how: int = signal.SIGKILL) -> tuple[int, float]:
        """Exit code (below 0: the signal that ended it) and seconds; `how` is sent after `delay` seconds.

        What the command prints is appended to `log`.
        """
        self.connection.send((words, str(log), delay, int(how)))
        answer: tuple[int, float] = self.connection.recv()
        return answer

    def close(self) -> None:
        self.connection.send(None)
        self.process.join()


def _serve(connection: Connection) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts what is in the background without one
    import torch

    import scenegpi.bulk.workers
    import scenegpi.cli
    import scenegpi.training.run
    import scenegpi.viz.picture  # noqa: F401

    torch.set_num_threads(1)
    while (case := connection.recv()) is not None:
        connection.send(_run(*case))


def _run(words: list[str], log: str, delay: float, how: int) -> tuple[int, float]:
    start = time.monotonic()
    child = os.fork()
    if not child:
        _child(words, log)
    sent = False
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), time.monotonic() - start
        now = time.monotonic() - start
        if (now >= delay and not sent) or now >= SECONDS:
            sent = True
            os.kill(child, how if now < SECONDS else signal.SIGKILL)
        time.sleep(0.001)


def _child(words: list[str], log: str) -> None:
    code: object = 0
    try:
        from scenegpi.cli import main

        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = (open(n, "w", buffering=1, closefd=False) for n in (1, 2))  # noqa: SIM115
        sys.argv = ["scenegpi", *words]
        main()
    except SystemExit as stop:
        code = stop.code
    except KeyboardInterrupt:  # before the command began
        code = 128 + signal.SIGINT
    except BaseException:
        traceback.print_exc()
        code = 70
    finally:
        os._exit(code if isinstance(code, int) else 0)


@dataclass
class Killed:
    """What came of the disturbed runs: stops by command and signal, runs by outcome; what is wrong, one line each."""

    kills: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(f"{name:24} {count:5}" for name, count in sorted((self.kills + self.outcomes).items()))


@dataclass(frozen=True)
class Job:
    """A command that writes to a folder: how it is started and resumed there."""

    name: str
    start: Callable[[Path], list[str]]
    resume: Callable[[Path], list[str]]


def attack_runs(runs: int, seed: int, jobs: int = 1) -> Killed:
    """`runs` disturbed runs of each command; `jobs` worker processes predict."""
    found, launcher = Killed(), Launcher()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "run.toml").write_text(CONFIG)
        scenes, model = root / "scenes", root / "train-whole" / "model"
        render_folder(scenes, 40)
        predict = ["predict", "--boxes", str(scenes), "--model", str(model), "--labels", "found", "--formats"]
        predict += ["dot,coco", "--batch", "3", "--jobs", str(jobs), "--out"]
        train = Job(
            "train",
            lambda out: ["train", "--config", str(root / "run.toml"), "--data", str(scenes), "--out", str(out)],
            lambda out: ["train", "--resume", "--out", str(out)],
        )
        again = Job("predict", lambda out: [*predict, str(out)], lambda out: [*predict, str(out), "--resume"])
        try:
            for job in (train, again):
                whole, log = root / f"{job.name}-whole", root / f"{job.name}.txt"
                code, seconds = launcher.run(job.start(whole), log)
                if code:
                    raise RuntimeError(f"{job.name}, undisturbed: exit code {code}: {log.read_text()[-2000:]}")
                for number in range(runs):
                    rng = random.Random(f"{seed} {job.name} {number}")
                    _disturb(launcher, job, root / f"{job.name}-{number}", whole, seconds, rng, found)
        finally:
            launcher.close()
    return found


def _disturb(
    launcher: Launcher, job: Job, out: Path, whole: Path, seconds: float, rng: random.Random, found: Killed
) -> None:
    log, history = out.with_suffix(".txt"), []
    words = job.start(out)
    for _ in range(rng.randint(1, KILLS)):
        how, delay = rng.choice(SIGNALS), rng.uniform(0, seconds)
        before = _half(out)
        code, _ = launcher.run(words, log, delay, how)
        if code == 0:
            break
        found.kills[f"{job.name} {how.name}"] += 1
        history.append(f"{how.name} after {delay:.3f} s: {code}")
        if how != signal.SIGKILL and _half(out) - before:
            found.faults.append(f"{job.name} {history}: left {_half(out) - before}")
        if code not in (-how, 128 + how):
            found.faults.append(f"{job.name} {history}: {log.read_text()[-300:]!r}")
        # a run that was stopped before it wrote its settings has nothing to go on with
        words = job.resume(out) if job.name == "predict" or (out / "config.json").exists() else job.start(out)
    else:
        code, _ = launcher.run(words, log)
    if code:
        found.faults.append(f"{job.name} {history}: exit code {code}: {log.read_text()[-300:]!r}")
    if "Traceback" in log.read_text():
        found.faults.append(f"{job.name} {history}: {log.read_text()[-3000:]}")
    problems = differences(whole, out)
    found.faults += [f"{job.name} {history}: {problem}" for problem in problems]
    found.outcomes[f"{job.name}: {'differs' if problems else 'same bytes'}"] += 1


def _half(out: Path) -> set[str]:
    """Locks and half-written files."""
    return {str(path.relative_to(out)) for path in out.rglob(".*")} if out.is_dir() else set()


def differences(whole: Path, out: Path) -> list[str]:
    """What the files of two runs do not share, one line each; the seconds in logs, and their own names, may differ."""
    names = [{str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} for root in (whole, out)]
    plain = [{name for name in each if not name.split(os.sep)[0].startswith("tensorboard")} for each in names]
    found = [f"{name}: missing" for name in sorted(plain[0] - plain[1])]
    found += [f"{name}: left over" for name in sorted(plain[1] - plain[0])]
    found += [f"{name}: differs" for name in sorted(plain[0] & plain[1]) if _read(whole, name) != _read(out, name)]
    return found


def _read(root: Path, name: str) -> object:
    path = root / name
    if path.name == "log.csv":
        with path.open(newline="") as handle:
            return [{key: value for key, value in row.items() if key != "seconds"} for row in csv.DictReader(handle)]
    if path.name == "finished.json":
        return _without_seconds(json.loads(path.read_text()))
    if path.name == "last.ckpt":
        import torch

        return _without_seconds(torch.load(path, weights_only=True))
    if path.name == "manifest.jsonl":  # in the order in which files were begun
        return sorted(file for line in path.read_text().splitlines() for file in json.loads(line)["files"])
    return path.read_bytes().replace(str(root).encode(), b"RUN")


def _without_seconds(value: Any) -> Any:
    """Tables and lists, tensors as bytes, that can be compared."""
    if isinstance(value, dict):
        return {key: _without_seconds(each) for key, each in value.items() if key != "seconds"}
    if isinstance(value, list | tuple):
        return [_without_seconds(each) for each in value]
    return (value.shape, value.numpy().tobytes()) if hasattr(value, "numpy") else value
