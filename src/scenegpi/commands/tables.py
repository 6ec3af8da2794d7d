"""Tables that commands print."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from scenegpi.commands.terminal import make_console
from scenegpi.data.dataset import Dataset
from scenegpi.data.statistics import Statistics, ranked, summary
from scenegpi.errors import printable

BAR = 30


def print_statistics(dataset: Dataset, figures: Statistics, rows: int) -> None:
    """What `data stats` prints."""
    console = make_console()
    title = Text(printable(f"{dataset.path} ({dataset.format})"))
    columns = Column(style="bold"), Column(justify="right")
    head = Table(*columns, title=title, show_header=False, title_justify="left")
    splits = ", ".join(f"{count:,} {name}" for name, count in figures.splits.items() if name != "unsplit")
    head.add_row("images", f"{figures.images:,}" + (f" ({splits})" if splits else ""))
    head.add_row("  with a box and a relation", f"{figures.images_with_relations:,}")
    head.add_row("boxes", f"{figures.boxes:,}")
    head.add_row("relations", f"{figures.relations:,}")
    share = figures.duplicate_relations / max(figures.relations, 1)
    head.add_row("  exact duplicates", f"{figures.duplicate_relations:,} ({share:.1%})")
    for name, values in (
        ("boxes per image", figures.boxes_per_image),
        ("relations per image", figures.relations_per_image),
    ):
        s = summary(values)
        head.add_row(name, f"mean {s['mean']:.1f}, median {s['median']:g}, {s['min']} to {s['max']}")
    console.print(head)
    vocabulary = figures.vocabulary
    _histogram(console, "classes", ranked(vocabulary.objects, figures.object_counts), rows)
    if vocabulary.predicates:
        _histogram(console, "predicates", ranked(vocabulary.predicates, figures.predicate_counts), rows)
    if figures.attribute_counts:
        table = Table(title="attributes by label, counted in these data: P(attribute | label)", title_justify="left")
        table.show_header = False
        for label, row in list(figures.attribute_priors().items())[: rows or None]:
            said = ", ".join(f"{name} {share:.1%}" for name, share in list(row.items())[:8])
            table.add_row(Text(printable(label)), Text(printable(said)))
        console.print(table)
    _histogram(console, "boxes per image", dict(_ranges(figures.boxes_per_image)), 0, share=False)


def _histogram(console: Console, title: str, counts: dict[str, int], rows: int, share: bool = True) -> None:
    total, most = max(sum(counts.values()), 1), max([1, *counts.values()])
    shown = list(counts.items())[: rows or None]
    cut = f", the first {len(shown)}" if len(shown) < len(counts) else ""
    table = Table(title=f"{title} ({len(counts)}{cut})" if share else title, title_justify="left", show_header=False)
    for name, count in shown:
        bar = "█" * round(BAR * count / most) or ("▏" if count else "")
        table.add_row(Text(printable(name)), f"{count:,}", f"{count / total:.1%}", bar)
    console.print(table)


def _ranges(values: np.ndarray) -> Iterator[tuple[str, int]]:
    """Boxes per image in a few ranges."""
    for low, high in itertools.pairwise([0, 1, 2, 5, 10, 15, 20, 30, 50, 100, np.inf]):
        count = int(((values >= low) & (values < high)).sum())
        last = "" if high == low + 1 else f"-{high - 1:g}" if np.isfinite(high) else " or more"
        if count:
            yield f"{low:g}{last}", count
