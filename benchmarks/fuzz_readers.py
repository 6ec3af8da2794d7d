"""Mutated files against every reader: no crash, no hang, no graph that breaks the record's rules.

    python benchmarks/fuzz_readers.py --mutations 2000 [--data ../shared/data/vg150]

Small files of every format (of real images where --data gives some) are damaged in one to four places: bytes flipped,
cut out, repeated, inserted, the end lost; in text also numbers and words exchanged. Each is validated and then read in
a worker process under a memory limit; the parent watches the clock. Allowed outcomes: it reads and every graph passes
all checks again, or DataError with one line that names the file.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import random
import re
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from scenegpi import SceneGraph
from scenegpi.data import DataError, convert, open_dataset, sample_path, validate, write_jsonl

SECONDS = 20
MEMORY = 4 * 2**30
WORDS = ["null", "true", "{}", "[]", '""', "-1", "0", "1e999", "NaN", "99999999999999999999", "0.5", '"x"', "[[[[1]]]]"]


def corpus(folder: Path, data: Path | None, images: int = 12) -> list[Path]:
    """The same few images in every format; each entry is what one opens."""
    dataset = open_dataset(data)[:images] if data else open_dataset(sample_path())
    made = [folder / "jsonl" / "x.jsonl", folder / "coco" / "x.json", folder / "vg"]
    for target in made:
        convert(dataset, target)
    rich = [folder / "jsonl-scored" / "x.jsonl", folder / "coco-scored" / "x.json", folder / "vg-scored"]
    write_jsonl(folder / "scored.jsonl", [_scored(graph, i) for i, graph in enumerate(dataset)])
    for target in rich:
        convert(open_dataset(folder / "scored.jsonl"), target)
    made += rich
    made += [_vrd(folder / "vrd", dataset), _rel(folder / "rel", dataset), _csv(folder / "csv" / "x.csv", dataset)]
    made += [_results(folder / "results" / "x.json", dataset), _yolo(folder / "yolo", dataset)]
    return made


def _scored(graph: SceneGraph, seed: int) -> SceneGraph:
    """The graph with scores and, for two images of three, distributions over a few pairs, in single precision."""
    rng = np.random.default_rng(seed)
    fields: dict = {"scores": rng.uniform(size=len(graph)).astype(np.float32)}
    fields["relation_scores"] = rng.uniform(size=len(graph.relations))
    if seed % 3:
        pairs = [(i, j) for i in range(min(len(graph), 3)) for j in range(min(len(graph), 3)) if i != j]
        fields["label_dist"] = rng.dirichlet(np.ones(len(graph.vocabulary.objects)), len(graph)).astype(np.float32)
        fields |= {
            "pairs": pairs,
            "pair_dist": rng.dirichlet(np.ones(1 + len(graph.vocabulary.predicates)), len(pairs)),
        }
    return graph.replace(**fields)


def _dump(path: Path, value: object) -> Path:
    import json

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


def _vrd(folder: Path, dataset) -> Path:
    rows = {}
    for graph in dataset:
        ends = [
            {"category": label, "bbox": [int(y1), int(y2), int(x1), int(x2)]}
            for label, (x1, y1, x2, y2) in zip(graph.labels.tolist(), graph.boxes.tolist(), strict=True)
        ]
        rows[graph.file] = [
            {"subject": ends[s], "object": ends[o], "predicate": p} for s, o, p in graph.relations.tolist()
        ]
    _dump(folder / "annotations_train.json", rows)
    _dump(folder / "objects.json", dataset.vocabulary.objects)
    _dump(folder / "predicates.json", dataset.vocabulary.predicates)
    _dump(folder / "image_sizes.json", {g.file: {"width": g.width, "height": g.height} for g in dataset})
    return folder


def _rel(folder: Path, dataset) -> Path:
    convert(dataset, folder / "train.json")
    relations = {str(g.image_id): g.relations.tolist() for g in dataset}
    _dump(folder / "rel.json", {"train": relations, "rel_categories": dataset.vocabulary.predicates})
    return folder


def _csv(path: Path, dataset) -> Path:
    lines = ["ImageID,LabelName1,LabelName2,XMin1,XMax1,YMin1,YMax1,XMin2,XMax2,YMin2,YMax2,RelationshipLabel"]
    for graph in dataset:
        unit = graph.boxes / ([graph.width, graph.height] * 2)
        for t in graph.triplets():
            boxes = [f"{unit[i][0]},{unit[i][2]},{unit[i][1]},{unit[i][3]}" for i in (t.subject_index, t.object_index)]
            lines.append(f"{graph.image_id},{t.subject},{t.object},{','.join(boxes)},{t.predicate}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))
    return path


def _results(path: Path, dataset) -> Path:
    rows = [
        {"image_id": g.image_id, "category_id": label, "bbox": [x1, y1, x2 - x1, y2 - y1], "score": 0.5}
        for g in dataset
        for label, (x1, y1, x2, y2) in zip(g.labels.tolist(), g.boxes.tolist(), strict=True)
    ]
    return _dump(path, rows)


def _yolo(folder: Path, dataset) -> Path:
    folder.mkdir(parents=True)
    for g in dataset:
        rows = [
            f"{label} {(x1 + x2) / 2 / g.width} {(y1 + y2) / 2 / g.height} {(x2 - x1) / g.width} {(y2 - y1) / g.height}"
            for label, (x1, y1, x2, y2) in zip(g.labels.tolist(), g.boxes.tolist(), strict=True)
        ]
        (folder / f"{g.image_id}.txt").write_text("\n".join(rows))
    return folder


def mutate(data: bytes, rng: random.Random, text: bool) -> bytes:
    """One to four injuries."""
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(data) + 1), rng.choice([1, 1, 2, 8, 64, 1000])
        kind = rng.choice(
            ["flip", "cut", "repeat", "noise", "end", "number", "word"]
            if text
            else ["flip", "cut", "repeat", "noise", "end", "zero"]
        )
        if kind == "flip" and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
        elif kind == "cut":
            data = data[:at] + data[at + length :]
        elif kind == "repeat":
            data = data[:at] + data[at : at + length] * rng.choice([2, 3, 50]) + data[at + length :]
        elif kind == "noise":
            data = data[:at] + rng.randbytes(length) + data[at + (0 if rng.random() < 0.5 else length) :]
        elif kind == "zero":
            data = data[:at] + rng.choice([b"\0", b"\xff"]) * length + data[at + length :]
        elif kind == "end" and rng.random() < 0.3:
            data = data[:at]
        elif kind in ("number", "word"):
            pattern = rb"-?\d+\.?\d*" if kind == "number" else rb'"[^"]*"|\[|\{'
            found = list(re.finditer(pattern, data[at : at + 4000]))
            if found:
                spot = rng.choice(found)
                word = rng.choice(WORDS).encode()
                data = data[: at + spot.start()] + word + data[at + spot.end() :]
    return data


def damage(original: Path, work: Path, rng: random.Random) -> Path:
    """A copy of a data set with one of its files damaged."""
    shutil.rmtree(work, ignore_errors=True)
    folder = original if original.is_dir() else original.parent
    shutil.copytree(folder, work)
    target = rng.choice(sorted(path for path in work.rglob("*") if path.is_file()))
    target.write_bytes(mutate(target.read_bytes(), rng, target.suffix != ".h5"))
    return work if original.is_dir() else work / original.name


def examine(path: Path) -> str:
    """What came of reading it; raises only what should never come."""
    outcome = "reads"
    try:
        report = validate(path)
        dataset = open_dataset(path)
        if report.errors:
            outcome = "defects reported"
        for graph in dataset:
            fields = {name: getattr(graph, name) for name in SceneGraph.__slots__}
            if SceneGraph(**fields) != graph:
                raise AssertionError(f"{path}: image {graph.image_id} changed when it was checked again")
    except DataError as error:
        line = str(error)
        if "\n" in line or not line.startswith(str(path if path.is_dir() else path.parent)):
            raise AssertionError(f"not one line with the file's name: {line!r}") from None
        return "refused"
    return outcome


def _worker(connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    logging.getLogger("scenegpi").setLevel(logging.ERROR)
    while (path := connection.recv()) is not None:
        try:
            connection.send((examine(path), ""))
        except Exception as error:
            connection.send(("FAULT", f"{type(error).__name__}: {error}"[:300]))


class Watcher:
    """A worker process that is replaced when it dies or takes too long."""

    def __init__(self) -> None:
        self.context = multiprocessing.get_context("fork")
        self._start()

    def _start(self) -> None:
        self.connection, other = self.context.Pipe()
        self.process = self.context.Process(target=_worker, args=(other,), daemon=True)
        self.process.start()
        other.close()

    def ask(self, path: Path) -> tuple[str, str]:
        self.connection.send(path)
        try:
            if self.connection.poll(SECONDS):
                return self.connection.recv()
            outcome = "HANG"
        except EOFError:
            outcome = "CRASH"
        self.process.kill()
        self.process.join()
        code = self.process.exitcode
        self._start()
        return outcome, f"exit code {code}"

    def close(self) -> None:
        self.connection.send(None)
        self.process.join(5)


def run(mutations: int, seed: int, data: Path | None, keep: Path | None = None) -> tuple[dict[str, Counter], list[str]]:
    """Outcomes by format, and what should never have come."""
    rng = random.Random(seed)
    outcomes: dict[str, Counter] = {}
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        originals = corpus(root / "originals", data)
        watcher = Watcher()
        for number in range(mutations):
            original = originals[number % len(originals)]
            name = original.parent.name if original.is_file() else original.name
            broken = damage(original, root / "work", rng)
            outcome, detail = watcher.ask(broken)
            outcomes.setdefault(name, Counter())[outcome] += 1
            if outcome.isupper():
                faults.append(f"{name}, mutation {number}: {outcome} {detail}")
                if keep:
                    shutil.copytree(root / "work", keep / f"{name}-{number}", dirs_exist_ok=True)
        watcher.close()
    return outcomes, faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, help="a data set whose first images are damaged (default: the sample)")
    parser.add_argument("--keep", type=Path, help="keep files that cause a fault here")
    options = parser.parse_args()
    start = time.perf_counter()
    outcomes, faults = run(options.mutations, options.seed, options.data, options.keep)
    from rich.console import Console
    from rich.table import Table

    columns = ["reads", "defects reported", "refused", "FAULT", "CRASH", "HANG"]
    table = Table(title=f"{options.mutations:,} mutations, seed {options.seed}, {time.perf_counter() - start:.0f} s")
    for column in ("format", *columns):
        table.add_column(column, justify="left" if column == "format" else "right")
    for name, counts in outcomes.items():
        table.add_row(name, *(str(counts[column]) for column in columns))
    total = sum(outcomes.values(), Counter())
    table.add_row("all", *(str(total[column]) for column in columns))
    Console().print(table)
    for fault in faults[:20]:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
