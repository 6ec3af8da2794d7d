"""Tables of figures, ours next to published ones: for the terminal (rich), Markdown and LaTeX.

Rows of different protocols are refused in one table. With `mark=True` they are allowed, marked with a letter,
and the differences are listed below the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING

from scenegpi.errors import MetricError
from scenegpi.metrics.protocol import Protocol
from scenegpi.metrics.published import Published
from scenegpi.metrics.result import Result

if TYPE_CHECKING:
    from rich.table import Table

MISSING = "–"


@dataclass(frozen=True)
class Row:
    """One system: its figures in 0..1, intervals where known, and the letters of the notes that concern it."""

    system: str
    figures: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    marks: str
    source: str


@dataclass(frozen=True)
class FigureTable:
    """What a table shows, before it takes a form. `notes` start with the letter of the rows that they concern."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str
    notes: tuple[str, ...]

    def rich(self) -> Table:
        """For a terminal: `rich.print(table.rich())`. It has no room for the sources."""
        from rich import box
        from rich.markup import escape
        from rich.table import Table

        caption = "\n".join([self.caption, *self.notes])
        table = Table(box=box.SIMPLE_HEAD, caption=escape(caption), pad_edge=False, padding=(0, 1, 0, 0))
        table.caption_justify, table.caption_style = "left", "dim"
        table.add_column("system", no_wrap=True)
        for name in self.columns:
            table.add_column(name, justify="right", no_wrap=True)
        for row in self.rows:
            name = row.system + (f" ({row.marks})" if row.marks else "")
            cells = [_cell(row, column, "\n{:.1f}–{:.1f}") for column in self.columns]
            table.add_row(escape(name), *cells, style="bold" if row.source == "ours" else None)
        return table

    def markdown(self) -> str:
        """A pipe table with the caption and the notes under it."""
        lines = [_pipes(self._head()), _pipes(["---", *["---:"] * len(self.columns), "---"])]
        lines += [_pipes(self._cells(row, f" <sup>{row.marks}</sup>")) for row in self.rows]
        return "\n".join([*lines, "", self.caption, *(f"\n{note}" for note in self.notes)]) + "\n"

    def latex(self) -> str:
        """A booktabs tabular with the notes in a minipage under it."""
        lines = [rf"\begin{{tabular}}{{l{'r' * len(self.columns)}l}}", r"\toprule", _ampersands(self._head())]
        lines.append(r"\midrule")
        for row in self.rows:
            marks = rf"\textsuperscript{{{row.marks}}} &" if row.marks else " &"
            lines.append(_ampersands(self._cells(row)).replace(" &", marks, 1))
        lines += [r"\bottomrule", r"\end{tabular}", "", r"\begin{minipage}{\linewidth}\footnotesize"]
        lines += [_tex(text) + r"\\" for text in (self.caption, *self.notes)]
        return "\n".join([*lines, r"\end{minipage}"]) + "\n"

    def _head(self) -> list[str]:
        return ["system", *self.columns, "source"]

    def _cells(self, row: Row, marks: str = "") -> list[str]:
        name = row.system + (marks if row.marks else "")
        return [name, *(_cell(row, column) for column in self.columns), row.source]


def figure_table(
    results: Mapping[str, Result],
    figures: Sequence[str] = ("R@50", "R@100"),
    published: Sequence[Published] = (),
    mark: bool = False,
) -> FigureTable:
    """Our results next to published figures.

    Args:
        results: our systems by name; the first one's protocol is the table's, with which the others are compared.
        figures: the columns.
        published: rows of `scenegpi.metrics.published.published(task)`; those with none of the figures are left out.
        mark: allow rows of another protocol, marked; without it they raise MetricError.
    """
    if not results:
        raise MetricError("table: no results")
    first = next(iter(results.values()))
    letters: dict[str, str] = {}
    rows = []
    for row in published:
        if not any(name in row.figures for name in figures):
            continue
        protocol = row.protocol
        if not first.counts["images_without_predictions"]:
            protocol = replace(protocol, empty=first.protocol.empty)  # no such image, so no difference
        marks = _marks(row.system, first.protocol, protocol, letters, mark)
        if row.note:
            marks += letters.setdefault(row.note + ".", _letter(letters))
        rows.append(Row(row.system, row.figures, {}, marks, row.source))
    for name, result in results.items():
        marks = _marks(name, first.protocol, result.protocol, letters, mark)
        for note in result.notes:
            marks += letters.setdefault(note, _letter(letters))
        if result.images != first.images:
            marks += letters.setdefault(f"{result.images:,} images.", _letter(letters))
        rows.append(Row(name, result.figures, result.intervals, marks, "ours"))
    interval = " with 95% intervals, bootstrap over images" if any(r.intervals for r in results.values()) else ""
    caption = f"In percent{interval}. {next(iter(results))}: {first.images:,} images; {first.protocol}."
    notes = tuple(f"{letter}: {note[:1].upper()}{note[1:]}" for note, letter in letters.items())
    return FigureTable(tuple(figures), tuple(rows), caption, notes)


def _marks(system: str, mine: Protocol, other: Protocol, letters: dict[str, str], mark: bool) -> str:
    phrases = mine.difference(other)
    if not phrases:
        return ""
    if not mark:
        raise MetricError(
            f"table: {system} was scored with another protocol ({phrases[0]}); mark=True shows it with a mark"
        )
    return "".join(letters.setdefault(f"{phrase}.", _letter(letters)) for phrase in phrases)


def _letter(letters: dict[str, str]) -> str:
    number = len(letters)
    return "abcdefghijklmnopqrstuvwxyz"[number % 26] * (1 + number // 26)


def _cell(row: Row, name: str, interval: str = " [{:.1f}, {:.1f}]") -> str:
    value = row.figures.get(name, float("nan"))
    if not isfinite(value):
        return MISSING
    low, high = row.intervals.get(name, (float("nan"), float("nan")))
    return f"{100 * value:.1f}" + (interval.format(100 * low, 100 * high) if isfinite(low) else "")


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(_tex(cell) for cell in cells) + r" \\"


_TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", ">": "$>$", "<": "$<$"}
_TEX |= {character: "\\" + character for character in "&%$#_{}"} | {MISSING: "--"}


def _tex(text: str) -> str:
    return "".join(_TEX.get(character, character) for character in text).replace("$>$=", r"$\geq$")
