"""Folders that hold more than our files, inputs that change between two runs, a store that many use at once.

*folder*: photos, boxes, a video and files of the user's own under the names that we would write; a random command
writes there. Whatever it says, each of the user's files has its bytes afterwards (with `--force` each input has).
*changed*: photos, boxes and options change between runs into one folder; its lines are those of a run in a new one.
*store*: a process replaces images while others search: every answer is that of one moment, and none fails.
"""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections.abc import Iterable
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from attack_corpus import picture, video
from scenegpi import SceneGraph, Vocabulary
from scenegpi.cli import app
from scenegpi.data import write_jsonl
from scenegpi.errors import SceneGPIError
from scenegpi.store import Store

WORDS = Vocabulary(["man", "hat", "horse"], ["on"])
THEIRS = ["predictions.jsonl", "run.json", "manifest.jsonl", "skipped.txt", "predictions.coco.json", "store.json"]
THEIRS += ["a.png", "b.png", "c.png", "a.dot", "c.dot", "clip.frames.png", ".film.mkv.part", ".cache.part/x"]
THEIRS += ["images-000001.parquet", "sales-20240101.parquet", "shards/000001.jsonl", "shards/notes.txt", ".lock"]
CONTENTS = (b"", b"mine", b'{"audio": "a.wav"}', b'{"files": ["a.png"]}\n{"mine"', b"[1]\n", b"\0\0\0")
LAYOUT = ["--model", "vg150-layout"]


def attack_folders(rounds: int, seed: int) -> list[str]:
    """What went wrong in this many rounds of each kind, one line each."""
    found = []
    for number in range(rounds):
        for kind in (_folder, _changed, _store):
            with tempfile.TemporaryDirectory() as name:
                rng = random.Random(f"{seed} {kind.__name__} {number}")
                found += [f"{kind.__name__} {number}: {line}" for line in kind(Path(name), rng)]
    return found


def _scene(rng: random.Random, name: str) -> SceneGraph:
    corners = np.sort(np.array([[[rng.uniform(0, 48) for _ in "xy"] for _ in "ab"] for _ in "123"]), axis=1)
    boxes = corners.reshape(3, 4) + np.array([0, 0, 1, 1])
    return SceneGraph(boxes, rng.choices(WORDS.objects, k=3), WORDS, file=name, width=48, height=36)


def _inputs(root: Path, rng: random.Random) -> None:
    for name in ("a.png", "b.jpg", "c.png"):
        picture().rotate(rng.randrange(360)).save(root / name)
    write_jsonl(root / "boxes.jsonl", [_scene(rng, name) for name in ("a.png", "b.jpg", "c.png")], overwrite=True)


def _call(words: Iterable[object]) -> tuple[str, str]:
    """What is printed, and what is wrong with the way it ended: any error but ours."""
    done = CliRunner().invoke(app, [*map(str, words)])
    fine = isinstance(done.exception, SceneGPIError | SystemExit | None) and done.exit_code in (0, 1)
    return done.output, "" if fine else f"{' '.join(map(str, words))}: {done.exception!r}"


def _bytes(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def _folder(root: Path, rng: random.Random) -> Iterable[str]:
    _inputs(root, rng)
    video(root / "clip.avi", [(48, 36)])
    out = root / rng.choice(["", "", "out", "deep/er"])
    inputs = set(_bytes(root))
    for name in rng.sample(THEIRS, rng.randint(1, 6)):
        if not (out / name).exists():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(rng.choice(CONTENTS))
    before, force = _bytes(root), rng.choice([[], [], ["--force"]])
    boxes, formats = ["--boxes", root / "boxes.jsonl", *LAYOUT], rng.choice(["png", "dot", "png,dot,coco", "none"])
    some = ["--out", out, "--formats", formats, *force]
    commands = [["predict", root, *boxes, *some], ["predict", root / "a.png", root / "c.png", *boxes, *some]]
    commands += [["predict", *boxes, *some], ["index", root / "boxes.jsonl", "--out", out]]
    commands += [["predict", root / "clip.avi", "--out", out, "--formats", rng.choice(["png", "none"]), *force]]
    for words in rng.choices(commands, k=2):
        yield from filter(None, [_call(words)[1]])
        after = _bytes(root)
        kept = {name: data for name, data in before.items() if not force or name in inputs}
        yield from (f"{words}: {name} {'changed' if name in after else 'is gone'}"
                    for name, data in kept.items() if after.get(name) != data)  # fmt: skip
        yield from (f"{words}: {name} was deleted" for name in before if name not in after)
        before |= {name: after[name] for name in before if name in after}


def _changed(root: Path, rng: random.Random) -> Iterable[str]:
    _inputs(root, rng)
    options: list[object] = ["--top", 3]
    for step in range(3):
        what = rng.choice(["photos", "boxes", "options", "formats", "nothing"])
        if what == "photos":
            picture().rotate(rng.randrange(360)).save(root / "a.png")
        elif what == "boxes":
            write_jsonl(root / "boxes.jsonl", [_scene(rng, n) for n in ("a.png", "b.jpg", "c.png")], overwrite=True)
        elif what == "options":
            options[1] = rng.randint(1, 5)
        words = ["predict", *(root / n for n in ("a.png", "b.jpg", "c.png")), "--boxes", root / "boxes.jsonl", *LAYOUT]
        words += [*options, "--formats", rng.choice(["none", "dot"]), "--out"]
        printed = []
        for out in (root / "run", root / f"new{step}"):
            text, wrong = _call([*words, out])
            printed.append([line for line in text.splitlines() if re.match(r"  \d", line)])
            if wrong or not list(root.glob("run*/predictions.jsonl")):
                yield f"{wrong or text}"
                return
        folder = max((p.parent for p in root.glob("run*/run.json")), key=lambda p: _newest(p, options))
        if _lines(folder) != _lines(root / f"new{step}"):
            yield f"step {step}, {what} changed: other lines than those of a new folder"
        if printed[0] != printed[1]:
            yield f"step {step}, {what} changed: {printed[0]} printed, not {printed[1]}"


def _newest(folder: Path, options: list[object]) -> bool:
    return json.loads((folder / "run.json").read_text())["options"]["top"] == options[1]


def _lines(folder: Path) -> dict[str, object]:
    """What each image's line says, but for scores, whose last bits depend on the images of a batch."""
    lines = (folder / "predictions.jsonl").read_text().splitlines()
    rows = [json.loads(line, parse_float=lambda _: None) for line in lines]
    return {row["source"]: (row["objects"], row["relations"], row["digest"]) for row in rows}


def _store(root: Path, rng: random.Random) -> Iterable[str]:
    """Each change gives all images the same label: an answer with two labels would be of two moments."""
    folder = root / rng.choice(["store", "a [1]", "n?", "x=1"])
    _replace(folder, 0)
    context = get_context("spawn")
    writer = context.Process(target=_keep_replacing, args=(folder, 8))
    writer.start()
    store, searches = Store(folder), 0
    while writer.is_alive() or searches < 10:
        searches += 1
        try:
            with store.snapshot():
                hits = store.search("*", limit=50).hits
                labels = {name for graph in store.graphs(hit.image for hit in hits).values() for name in graph.names}
        except Exception as error:
            yield f"search {searches}: {error!r}"
            continue
        if len(hits) != 6 or len(labels) != 1:
            yield f"search {searches}: {len(hits)} images, labels {labels}"
    writer.join()
    if writer.exitcode:
        yield f"the writer ended with {writer.exitcode}"


def _replace(folder: Path, number: int) -> None:
    label = WORDS.objects[number % 3]
    Store(folder).add(SceneGraph([[0, 0, 9, 9]], [label], WORDS, image_id=k, width=9, height=9) for k in range(6))


def _keep_replacing(folder: Path, changes: int) -> None:
    for number in range(1, changes):
        _replace(folder, number)
