"""Kills at random moments: `scenegpi train` and `scenegpi predict` are stopped, go on, and end as if never disturbed.

A training run (drawn scenes, a small vision stage, baseline, context, calibration) and a prediction run (the photos of
those scenes by that model) are done once without a disturbance. Then each is started anew, again and again, and
stopped by SIGKILL, SIGTERM or SIGINT up to KILLS times, at moments drawn from the time that the whole took; after each
stop it is told to go on. At the end every file must have the bytes of the undisturbed run, except for the seconds in
logs: no image lost or doubled, no half-written file left. Commands run in children of a process that has imported
everything, so that the moments fall on work and not on imports.
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
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from scenegpi.paper.rendered import render_folder

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
KILLS = 4
SECONDS = 1800
LOADED = ["scenegpi.bulk.workers", "scenegpi.cli", "scenegpi.training.run", "scenegpi.viz.picture", "torch"]
CONFIG = """
half = true
model.vision.features.photo_size = 32
model.vision.head.hidden = 16
model.baseline = {hidden = 16, embedding = 8, rank = 4}
model.network = {hidden = 12, phi = 10, alpha = 9}
fit = {epochs = 2, folds = 2}
optim = {batch = 8, warmup = 1, patience = 2}
baseline.epochs = 3
context.epochs = 3
"""


@dataclass
class Killed:
    """What came of the disturbed runs: stops by command and signal, runs by outcome; what is wrong, one line each."""

    kills: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(f"{name:24} {count:5}" for name, count in sorted((self.kills + self.outcomes).items()))


def attack_runs(runs: int, seed: int, jobs: int = 1) -> Killed:
    """`runs` disturbed runs of each command; `jobs` worker processes predict."""
    found = Killed()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "run.toml").write_text(CONFIG)
        scenes, model = str(root / "scenes"), str(root / "train-whole" / "model")
        render_folder(root / "scenes", 40)
        predict = ["predict", "--boxes", scenes, "--model", model, "--labels", "found", "--formats", "dot,coco"]
        commands = {
            "train": ["train", "--config", str(root / "run.toml"), "--data", scenes, "--out"],
            "predict": [*predict, "--batch", "3", "--jobs", str(jobs), "--out"],
        }
        for command, words in commands.items():
            whole, log = root / f"{command}-whole", root / f"{command}.txt"
            code, seconds = _run([*words, str(whole)], log)
            if code:
                raise RuntimeError(f"{command}, undisturbed: exit code {code}: {log.read_text()[-2000:]}")
            for number in range(runs):
                rng = random.Random(f"{seed} {command} {number}")
                _disturb(words, root / f"{command}-{number}", whole, seconds, rng, found)
    return found


def _run(words: list[str], log: Path, delay: float = SECONDS, how: int = signal.SIGKILL) -> tuple[int, float]:
    """Exit code (below 0: the signal that ended it) and seconds; `how` is sent after `delay` seconds."""
    os.environ["OMP_NUM_THREADS"] = "1"
    context = get_context("forkserver")
    context.set_forkserver_preload(LOADED)
    child, start = context.Process(target=_child, args=(words, str(log))), time.monotonic()
    child.start()
    child.join(delay)
    if child.pid is not None and child.exitcode is None:
        os.kill(child.pid, how)
        child.join(SECONDS)
    return -99 if child.exitcode is None else child.exitcode, time.monotonic() - start


def _child(words: list[str], log: str) -> None:
    code: object = 0
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        import torch

        from scenegpi.cli import main

        torch.set_num_threads(1)
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


def _disturb(command: list[str], out: Path, whole: Path, seconds: float, rng: random.Random, found: Killed) -> None:
    log, history, name = out.with_suffix(".txt"), [], command[0]
    words, code = [*command, str(out)], -1
    for _ in range(rng.randint(1, KILLS)):
        how, delay = rng.choice(SIGNALS), rng.uniform(0, seconds)
        before = _half(out)
        code, _ = _run(words, log, delay, how)
        if code == 0:
            break
        found.kills[f"{name} {how.name}"] += 1
        history.append(f"{how.name} after {delay:.3f} s: {code}")
        if how != signal.SIGKILL and _half(out) - before:
            found.faults.append(f"{name} {history}: left {_half(out) - before}")
        if code not in (-how, 128 + how):
            found.faults.append(f"{name} {history}: {log.read_text()[-300:]!r}")
        if (out / "config.json").exists():  # a training that was stopped before it wrote its settings begins again
            words = ["train", "--resume", "--out", str(out)]
    if code:
        code, _ = _run(words, log)
    text = log.read_text()
    if code or "Traceback" in text:
        found.faults.append(f"{name} {history}: exit code {code}: {text[-3000:]!r}")
    problems = differences(whole, out)
    found.faults += [f"{name} {history}: {problem}" for problem in problems]
    found.outcomes[f"{name}: {'differs' if problems else 'same bytes'}"] += 1


def _half(out: Path) -> set[str]:
    """Locks and half-written files."""
    return {str(path.relative_to(out)) for path in out.rglob(".*")} if out.is_dir() else set()


def differences(whole: Path, out: Path) -> list[str]:
    """What the files of two runs do not share, one line each; the seconds in logs, and their own names, may differ."""
    names = [{str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()} for root in (whole, out)]
    plain = [{name for name in each if not name.startswith("tensorboard")} for each in names]
    found = [f"{name}: missing or left over" for name in sorted(plain[0] ^ plain[1])]
    return found + [
        f"{name}: differs" for name in sorted(plain[0] & plain[1]) if _read(whole, name) != _read(out, name)
    ]


def _read(root: Path, name: str) -> object:
    path = root / name
    if path.name == "log.csv":
        with path.open(newline="") as handle:
            return _without_seconds(list(csv.DictReader(handle)))
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
