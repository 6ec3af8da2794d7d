"""What `scenegpi predict` prints at the end: a few graphs, what became of labels and boxes, the files written."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scenegpi.bulk.image_files import WHOLE, suffix
from scenegpi.bulk.manifest import SHARDS
from scenegpi.bulk.run_folder import LINES, SKIPPED
from scenegpi.bulk.summary import Summary
from scenegpi.bulk.video_run import VideoSummary
from scenegpi.bulk.workers import Setup
from scenegpi.commands.terminal import say
from scenegpi.data.detector_results import NO_LABEL
from scenegpi.errors import counted, printable
from scenegpi.graph import SceneGraph
from scenegpi.prediction.model_words import UNMATCHED
from scenegpi.viz.text import numbered
from scenegpi.words.label_map import LabelMap

TRIPLETS = 8
MOST_LINES = 12
MOST_NAMED = 5


def print_summary(
    console: Console, summary: Summary, setup: Setup, whole: list[Path], left_out: Sequence[Path] = ()
) -> None:
    """The end of a run: a few graphs, what happened to labels and boxes, the files."""
    for key, _, graph in summary.shown:
        head = f"{key}: {counted(len(graph), 'box')}, {counted(len(graph.relations), 'relation')}"
        _line(console, head, "bold")
        console.print(triplets(graph))
    more = summary.predicted + summary.resumed - len(summary.shown)
    if more > 0 and not (setup.folder / SHARDS).exists():
        _line(console, f"{counted(more, 'more image')}: `scenegpi report {setup.folder}` shows them", "dim")
    for line in label_lines(summary, setup):
        _line(console, line)
    for reason, count in summary.left_out.items():
        if count and not reason.startswith(UNMATCHED):
            _line(console, f"{counted(count, 'box')} left out: {reason}")
    for reason, count in summary.photos_unread.items():
        photos = "the photo is" if count == 1 else f"{count:,} photos are"
        _line(console, f"{reason}: {photos} used only to draw on", "dim")
    if left_out:
        _line(console, left_out_line(left_out), "dim")
    _written(console, summary, setup, whole)


def _line(console: Console, text: str, style: str = "") -> None:
    console.print(Text(printable(text), style=style), soft_wrap=True)


def print_problems(problems: Sequence[str], folder: Path) -> None:
    """What was skipped, to stderr."""
    sys.stdout.flush()
    for line in problems[:MOST_LINES]:
        say(f"skipped: {line}", error=True)
    if len(problems) > MOST_LINES:
        say(f"... and {len(problems) - MOST_LINES:,} more, all in {folder / SKIPPED}", error=True)


def print_video(console: Console, summary: VideoSummary, lines: Path) -> None:
    """The end of a video: its relations, those in most frames first, and the files."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    for seen in summary.relations[:TRIPLETS]:
        score, count = (Text(text, style="dim") for text in (f"  {seen.score:.2f}", counted(seen.frames, "frame")))
        predicate = Text(printable(seen.predicate), style="italic cyan")
        table.add_row(score, Text(seen.subject), predicate, Text(seen.object), count)
    if len(summary.relations) > TRIPLETS:
        table.add_row("", Text(f"... and {len(summary.relations) - TRIPLETS} more", style="dim"))
    console.print(table)
    counts = f"{counted(summary.frames, 'frame')}, {counted(summary.things, 'thing')}"
    _line(console, f"wrote {lines}: {counts}")
    for path in summary.written:
        _line(console, f"      {path}")
    print_problems(summary.skipped, lines.parent)


def left_out_line(files: Sequence[Path]) -> str:
    """Files in folders that are not recognised as photos: a few names, or how many of each suffix."""
    if len(files) <= MOST_NAMED:
        which = ", ".join(file.name for file in files)
    else:
        kinds = Counter(file.suffix.lower() or "no suffix" for file in files).most_common()
        which = ", ".join(f"{kind} {count:,}" for kind, count in kinds[:MOST_NAMED])
        which += ", ..." if len(kinds) > MOST_NAMED else ""
    return f"{counted(len(files), 'file')} left out, not recognised as photos: {which}"


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
    """Labels that the model has under another name or not at all, each with its number of boxes."""
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
    again = f"{counted(summary.resumed, 'image')} done before"
    parts = ((summary.predicted, "image"), (summary.boxes, "box"), (summary.relations, "relation"))
    counts = ", ".join(counted(*part) for part in parts) + (f"; {again}" if summary.resumed else "")
    lines = folder / (LINES if not (folder / SHARDS).exists() else SHARDS)
    if summary.predicted or not summary.resumed:
        _line(console, f"wrote {lines}: {counts}")
    else:
        _line(console, f"kept {lines}: {again}, from the same input")
    each = [kind for kind in setup.formats if kind not in WHOLE]
    files = [Path("*" + suffix(kind)) for kind in each]
    if summary.predicted + summary.resumed == 1 and summary.shown:
        files = [Path(summary.shown[0][1] + suffix(kind)) for kind in each]
    if lines.name == SHARDS:
        folder, files = lines, [Path("*") / file for file in files]
    for path in [*(folder / file for file in files if summary.predicted or summary.resumed), *whole]:
        _line(console, f"      {path}")
