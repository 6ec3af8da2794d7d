"""Hostile input against everything that reads, and kills at random moments.

    python tools/attack.py [--runs 5000] [--rounds 0] [--kills 0] [--seed 0] [--data FOLDER] [--keep FOLDER]

Nothing may fault, crash, hang or take all memory; nothing may be lost or doubled.

Small good files of every kind (attack_corpus.py) are damaged, by bytes and by structure (attack_mutations.py), or made
to claim or hold millions of something, and read by a worker process with a limit on memory and time (attack_worker.py,
which also says what the outcomes mean). With `--rounds N`, commands write into folders of others' files, inputs change
between runs, and a store is searched while it changes (attack_folders.py). With `--kills N`, N runs each of `scenegpi
train` and `scenegpi predict` are stopped, go on, and are compared with an undisturbed run (attack_kills.py).
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from attack_corpus import corpus
from attack_folders import attack_folders
from attack_kills import attack_runs
from attack_mutations import damage
from attack_worker import BAD, GOOD, Watcher

Outcomes = dict[str, Counter[str]]


@dataclass
class Findings:
    """Outcomes by kind of input, and what should never have come, one line each."""

    outcomes: Outcomes = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def note(self, kind: str, outcome: str, fault: str) -> None:
        self.outcomes.setdefault(kind, Counter())[outcome] += 1
        if outcome in BAD:
            self.faults.append(f"{kind}, {fault}")


def attack_files(runs: int, seed: int, data: Path | None = None, keep: Path | None = None) -> Findings:
    """`runs` damaged files, the kinds in turn; a run is known by its seed and number."""
    findings = Findings()
    with tempfile.TemporaryDirectory() as folder, closing(Watcher()) as watcher:
        cases, work = corpus(Path(folder) / "originals", data), Path(folder) / "work"
        for number, (kind, (how, original)) in zip(range(runs), cycle(cases.items()), strict=False):
            outcome, detail = watcher.ask(how, damage(original, work, random.Random(f"{seed} {number}")))
            findings.note(kind, outcome, f"run {number}: {outcome} {detail}")
            if outcome in BAD and keep:
                with suppress(shutil.Error):  # pipes are not copied
                    shutil.copytree(work, keep / f"{kind}-{number}", symlinks=True, dirs_exist_ok=True)
    return findings


def show(findings: Findings, title: str) -> None:
    """A table of outcomes, then the faults."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title)
    for column in ("kind", *GOOD, *BAD):
        table.add_column(column, justify="left" if column == "kind" else "right")
    for kind, counts in findings.outcomes.items():
        table.add_row(kind, *(str(counts[column]) for column in (*GOOD, *BAD)))
    total = sum(findings.outcomes.values(), Counter())
    table.add_row("all", *(str(total[column]) for column in (*GOOD, *BAD)), style="bold")
    Console(width=110).print(table)
    for fault in findings.faults[:50]:
        print(fault)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=0, help="rounds of attack_folders.py")
    parser.add_argument("--kills", type=int, default=0, help="disturbed runs of train and of predict")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--data", type=Path, help="a data set whose first images are damaged (default: the sample)")
    parser.add_argument("--keep", type=Path, help="keep files that cause a fault here")
    options = parser.parse_args()
    start = time.perf_counter()
    findings = attack_files(options.runs, options.seed, options.data, options.keep)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = f"{time.perf_counter() - start:.0f} s, {used.ru_utime + used.ru_stime:.0f} CPU s"
    show(findings, f"{options.runs:,} files, seed {options.seed}, {spent}")
    faults = findings.faults
    if options.rounds:
        wrong = attack_folders(options.rounds, options.seed)
        print(
            f"{options.rounds} rounds of folders, changed inputs, a shared store: {len(wrong)} faults", *wrong, sep="\n"
        )
        faults = faults + wrong
    if options.kills:
        killed = attack_runs(options.kills, options.seed)
        print(killed, *killed.faults[:50], sep="\n")
        faults = faults + killed.faults
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
