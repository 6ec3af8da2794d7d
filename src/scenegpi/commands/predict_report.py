"""What `scenegpi predict` prints at the end: a few graphs, what became of labels and boxes, the files written."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenegpi.commands.predict_output import LINES, SHARDS, SKIPPED, WHOLE, suffix
from scenegpi.commands.predict_run import SHOWN, Setup, Summary
from scenegpi.commands.terminal import say
from scenegpi.data import Dataset
from scenegpi.data.detector_results import NO_LABEL
from scenegpi.errors import counted, printable
from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph
from scenegpi.prediction.model_words import UNMATCHED
from scenegpi.viz.text import numbered
from scenegpi.words.label_map import LabelMap

TRIPLETS = 8
MOST_LINES = 12


def print_summary(console: Console, summary: Summary, setup: Setup, whole: list[Path], data: Dataset | None) -> None:
    """Prints the end of a run; what was skipped goes to stderr and into a file."""
    if 0 < summary.predicted <= SHOWN:
        for key, _, graph in summary.shown:
            head = f"{key}: {counted(len(graph), 'box')}, {counted(len(graph.relations), 'relation')}"
            console.print(Text(printable(head), style="bold"), soft_wrap=True)
            console.print(triplets(graph))
    for line in label_lines(summary, setup):
        console.print(Text(line), soft_wrap=True)
    for reason, count in summary.left_out.items():
        if count and not reason.startswith(UNMATCHED):
            console.print(Text(printable(f"{counted(count, 'box')} left out: {reason}")), soft_wrap=True)
    for reason, count in summary.photos_unread.items():
        photos = "the photo is" if count == 1 else f"{count:,} photos are"
        console.print(Text(f"{reason}: {photos} only drawn on", style="dim"), soft_wrap=True)
    _written(console, summary, setup, whole)
    problems = list(summary.skipped)
    if data is not None:
        problems += [str(defect) for defect in data.report.defects if defect.severity == "error"]
    skipped = setup.folder / SKIPPED
    skipped.unlink(missing_ok=True)
    if problems:
        with whole_file(skipped) as part:
            part.write_text("".join(f"{line}\n" for line in problems), encoding="utf-8", errors="replace")
        sys.stdout.flush()
        for line in problems[:MOST_LINES]:
            say(f"skipped: {line}", error=True)
        if len(problems) > MOST_LINES:
            say(f"... and {len(problems) - MOST_LINES:,} more, all in {skipped}", error=True)


def triplets(graph: SceneGraph) -> Table:
    """One image: its best relations, objects named as in the picture."""
    names = numbered(graph.names, 60)
    rest = len(graph.relations) - TRIPLETS
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    for triplet in graph.triplets(top=TRIPLETS):
        table.add_row(
            Text(f"  {triplet.score:.2f}", style="dim"),
            Text(names[triplet.subject_index]),
            Text(printable(triplet.predicate), style="italic cyan"),
            Text(names[triplet.object_index]),
        )
    if rest > 0:
        table.add_row("", Text(f"... and {rest} more", style="dim"))
    if not len(graph.relations):
        table.add_row("", Text("no relation is likely enough" if len(graph) else "no boxes", style="dim"))
    return table


def label_lines(summary: Summary, setup: Setup) -> list[str]:
    """What became of labels that the model does not know by that name, and the number of boxes of each."""
    lines: list[str] = []
    for vocabulary, counts in summary.names.items():
        if summary.target is None or vocabulary.objects == (NO_LABEL,):
            continue
        labels = LabelMap.between(vocabulary, summary.target, threshold=setup.options.similarity)
        found = labels.report(dict(counts)).splitlines()
        lost = sum(counts[match.source] for match in labels.unmapped)
        if found:
            total = sum(counts.values())
            head = f"labels in the model's words ({counted(total, 'box')}, {lost:,} left out):"
            more = [f"  ... and {len(found) - MOST_LINES} more labels"] if len(found) > MOST_LINES else []
            lines += [head, *(f"  {line}" for line in found[:MOST_LINES]), *more]
    return lines


def _written(console: Console, summary: Summary, setup: Setup, whole: list[Path]) -> None:
    folder = setup.folder
    again = f"; {counted(summary.resumed, 'image')} done before" if summary.resumed else ""
    parts = ((summary.predicted, "image"), (summary.boxes, "box"), (summary.relations, "relation"))
    counts = ", ".join(counted(*part) for part in parts) + again
    lines = folder / (LINES if not (folder / SHARDS).exists() else SHARDS)
    console.print(Text(printable(f"wrote {lines}: {counts}")), soft_wrap=True)
    each = [kind for kind in setup.formats if kind not in WHOLE]
    files = [Path("*" + suffix(kind)) for kind in each]
    if summary.predicted == 1 and summary.shown:
        files = [Path(summary.shown[0][1] + suffix(kind)) for kind in each]
    if lines.name == SHARDS:
        folder, files = lines, [Path("*") / file for file in files]
    for path in [*(folder / file for file in files if summary.predicted), *whole]:
        console.print(Text(printable(f"      {path}")), soft_wrap=True)
