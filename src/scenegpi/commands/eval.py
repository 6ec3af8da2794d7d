"""`scenegpi eval`: scores a model, or a file of predictions from any tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from scenegpi.commands.options import File, Split, Text
from scenegpi.commands.terminal import make_console, say
from scenegpi.errors import MetricError, counted, naming
from scenegpi.files import not_an_input, write_json
from scenegpi.metrics.protocol import Constraint, Empty, Match, Protocol, Several, Task

if TYPE_CHECKING:
    from rich.table import Table

    from scenegpi.metrics.intervals import Difference
    from scenegpi.metrics.result import Result

CONSTRAINT = "graph: one predicate per pair; none: all predicates (ng); or both."
EMPTY = "Images without predictions: count as 0 (zero), left out (skip), or as usual for each figure (field)."
INFORMATIVE = "With --model: prefer rare predicates to common ones, from 0 (not at all) to 1."
MATCH = "Which boxes match: those that overlap, the same boxes (by index), or as in SGBench."


def result_table(result: Result) -> Table:
    """The figures of a result, in percent: one line per family, one column per K."""
    cells = {}
    for name, value in result.figures.items():
        low, high = result.intervals.get(name, (nan, nan))
        cells[name] = "–" if isnan(value) else f"{100 * value:.1f}"
        cells[name] += "" if isnan(low) else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return _family_table(cells, result.protocol.ks, "in percent")


def difference_table(differences: Mapping[str, Difference], ks: tuple[int, ...]) -> Table:
    """Paired differences in points, the plain figures only; a star where the interval excludes 0."""
    cells = {}
    for name, found in differences.items():
        if "-" not in name:
            star = "*" if found.low > 0 or found.high < 0 else " "
            cells[name] = f"{100 * found.difference:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]{star}"
    return _family_table(cells, ks, "difference")


def _family_table(cells: Mapping[str, str], ks: tuple[int, ...], title: str) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Column, Table

    columns = (Column(f"@{k}", justify="right") for k in ks)
    table = Table(Column(title, no_wrap=True), *columns, box=box.SIMPLE_HEAD)
    lines: dict[str, dict[int, str]] = {}
    for name, cell in cells.items():
        family, _, rest = name.partition("@")
        number, _, tail = rest.partition(",")
        if number.isdigit() and int(number) in ks:
            lines.setdefault(f"{family} {tail}".strip(), {})[int(number)] = cell
        else:
            lines.setdefault(name, {})[ks[0]] = cell
    for name, line in lines.items():
        table.add_row(name, *(escape(line.get(k, "")) for k in ks))
    return table


def eval_command(
    task: Annotated[Task, Option(help="What the system was given: boxes and labels, boxes, or nothing.")],
    predictions: Annotated[File, Argument(help="JSON lines, or an npz file that holds the ground truth too.")] = None,
    model: Annotated[Text, Option(help="Instead of a file: run this model (a folder or a shipped name).")] = None,
    data: Annotated[File, Option(help="Ground truth, for JSON lines and --model: a data set of any format.")] = None,
    photos: Annotated[File, Option(help="With --model: the folder of the photos.")] = None,
    detector: Annotated[Text, Option(help="With --task sgdet: the detector, as for predict.")] = None,
    limit: Annotated[int, Option(help="With --model: only this many images; 0 for all.", min=0)] = 0,
    informative: Annotated[float, Option(help=INFORMATIVE, min=0, max=1)] = 0.0,
    device: Annotated[str, Option(help="With --model: where it runs, cpu, cuda, ...")] = "cpu",
    split: Split = None,
    train: Annotated[File, Option(help="Training data, for zR@K and head, body, tail.")] = None,
    json_file: Annotated[File, Option("--json", help="Write all figures to this file.")] = None,
    k: Annotated[str, Option(help="Values of K in recall@K, separated by commas.")] = "20,50,100",
    constraint: Annotated[Constraint, Option(help=CONSTRAINT)] = "both",
    empty: Annotated[Empty, Option(help=EMPTY)] = "field",
    several: Annotated[Several, Option(help="A pair with several predicates: refuse it, or keep the best.")] = "refuse",
    per_pair: Annotated[str, Option(help="For VRD's predicate detection: predicates per pair, such as 1,70.")] = "",
    iou: Annotated[float, Option(help="Minimum IoU at which two boxes match.")] = 0.5,
    match: Annotated[Match, Option(help=MATCH)] = "overlap",
    allow_missing: Annotated[bool, Option("--allow-missing", help="Allow images without a prediction.")] = False,
    bootstrap: Annotated[int, Option(help="Bootstrap replicates for the 95% intervals; 0 for none.", min=0)] = 1000,
    seed: Annotated[int, Option(help="Random seed of the bootstrap.")] = 0,
    against: Annotated[File, Option(help="Another system's predictions, for a paired comparison.")] = None,
    published: Annotated[bool, Option("--published", help="Also show published figures.")] = False,
) -> None:
    """Score predictions, or a model, against ground truth: R@K, mR@K, zR@K, A@K, with and without graph constraint."""
    from scenegpi.evaluation import evaluate_file, evaluate_model

    if (predictions is None) == (model is None):
        raise typer.BadParameter("give a file of predictions, or a model with --model")
    running = {"photos": photos, "limit": limit, "informative": informative, "device": device != "cpu"}
    _check_unused(model, task, detector=detector, **running)
    file = Path(model or "") if predictions is None else predictions
    if json_file is not None:
        not_an_input(json_file, predictions, data, against, train)
    name = file.name if data is None else f"{data}{f' ({split})' if split else ''}"
    rules = {"per_pair": _numbers(per_pair, "--per-pair"), "match": match, "data": name}
    protocol = _protocol(task, constraint, _numbers(k, "--k"), iou, empty, several, **rules)
    how: dict[str, Any] = {"data": data, "split": split, "train": train, "bootstrap": bootstrap, "seed": seed}
    if model is None:
        result = evaluate_file(file, protocol, allow_missing=allow_missing, **how)
    else:
        options: dict[str, Any] = {"photos": photos, "limit": limit, "informative": informative, "device": device}
        result = evaluate_model(model, protocol, finder=detector, **options, **how)
    differences: dict[str, Difference] = {}
    if against is not None:
        differences = paired(evaluate_file(against, protocol, allow_missing=allow_missing, **how), result, against)
    if json_file is not None:
        scored: dict[str, Any] = {"predictions" if model is None else "model": str(file), "task": task}
        scored |= {} if detector is None else {"detector": detector}
        scored |= {"data": None if data is None else str(data), "split": split}  # so that a report finds the images
        if against is not None:
            found = {name: asdict(difference) for name, difference in differences.items()}
            scored["against"] = {"predictions": str(against), "differences": found}
        write_json(json_file, {**scored, **result.to_dict()})
    _print(result, differences, against, published)
    if json_file is not None:
        say(f"Wrote {json_file}")


def _check_unused(model: str | None, task: Task, **options: Any) -> None:
    unused = next((name for name, value in options.items() if value), None)
    if model is None and unused is not None:
        raise typer.BadParameter(f"--{unused} needs --model: a file of predictions is scored as it is")
    if options["detector"] is not None and task != "sgdet":
        raise typer.BadParameter("--detector needs --task sgdet: in the other tasks, boxes are given")


def _protocol(*rules: Any, **more: Any) -> Protocol:
    try:
        return Protocol(*rules, **more)
    except MetricError as error:
        raise typer.BadParameter(str(error)) from None


def paired(other: Result, result: Result, file: Path) -> dict[str, Difference]:
    """How much better a result is than another, by paired bootstrap; DataError where their images differ."""
    from scenegpi.metrics.intervals import compare

    with naming(file, MetricError):
        return compare(other, result)


def _print(result: Result, differences: dict[str, Difference], against: Path | None, published: bool) -> None:
    from rich.text import Text

    console = make_console()
    console.print(result_table(result))
    images, relations = counted(result.images, "image"), counted(result.counts["relations"], "relation")
    console.print(Text(f"{images}, {relations}. {result.protocol}."))
    for note in [*result.notes, *([f"Zero-shot: {result.zero_shot}."] if result.zero_shot else [])]:
        console.print(Text(note, style="bold reverse" if note.startswith("SCORED ON") else ""), soft_wrap=True)
    if differences:
        console.print(difference_table(differences, result.protocol.ks))
        legend = f"In points, compared with {against} on the same images; * the 95% interval excludes 0."
        console.print(Text(legend), soft_wrap=True)
    if published:
        from scenegpi.metrics.published import published as reported
        from scenegpi.metrics.table import figure_table

        names = [name for name in ("R@50", "R@100", "ngR@50", "ngR@100") if name in result.figures]
        console.print(figure_table({"yours": result}, names, reported(result.protocol.task), mark=True).rich())


def _numbers(text: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace(",", " ").split())
    except ValueError:
        raise typer.BadParameter(f"{option}: expected whole numbers separated by commas, found {text!r:.60}") from None
