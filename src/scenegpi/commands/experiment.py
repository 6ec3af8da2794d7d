"""`scenegpi experiment labelling`: the paper's synthetic experiment, its tables and its curves."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from scenegpi.commands.terminal import make_console, say
from scenegpi.errors import counted

if TYPE_CHECKING:
    from rich.console import Console

    from scenegpi.paper.labelling.experiment import Plan
    from scenegpi.paper.labelling.report import Point

QUICK = "Two sample counts, one seed, short training: one to two minutes of CPU time."


def labelling(
    quick: Annotated[bool, Option("--quick", help=QUICK)] = False,
    out: Annotated[Path, Option(help="Folder for numbers, figure and finished cells.")] = Path("out/labelling"),
    seeds: Annotated[
        int | None, Option(help="Number of runs per cell; by default 3, or 1 with --quick.", min=1)
    ] = None,
    threads: Annotated[int, Option(help="CPU threads; more hardly help networks this small.", min=1)] = 1,
    draw: Annotated[Path | None, Option(help="Train nothing: print and draw this results.json.")] = None,
) -> None:
    """Section 5.1 of the paper: accuracy of graph labelling against the number of training samples.

    GPI in both forms, an LSTM and a fully-connected network of the same size. Finished cells are kept in OUT/cells: run
    the same command again after an interruption and it continues where it stopped.
    """
    from scenegpi.files import writing
    from scenegpi.paper.labelling.report import read_results

    drawn = None if draw is None else read_results(draw)
    try:
        with writing(out):
            out.mkdir(parents=True, exist_ok=True)
            _show(drawn or _train(quick, out, seeds, threads), out)
    except KeyboardInterrupt:
        say(f"stopped; run the same command again to continue with the cells in {out / 'cells'}", error=True)
        raise typer.Exit(130) from None


def _train(quick: bool, out: Path, seeds: int | None, threads: int) -> dict[str, Any]:
    cells = out / "cells"
    cells.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=cells):
        pass  # better to fail here than after the first cell

    import torch

    from scenegpi.files import write_json
    from scenegpi.paper.labelling.experiment import full_plan, quick_plan
    from scenegpi.paper.labelling.report import results_file

    torch.set_num_threads(threads)
    plan = quick_plan(seeds or 1) if quick else full_plan(seeds or 3)
    console = make_console()
    _print_models(plan, console)
    results = results_file(plan, _run(plan, cells, console))
    write_json(out / "results.json", results)
    say(f"{out / 'results.json'}: all numbers and choices")
    return results


def _print_models(plan: Plan, console: Console) -> None:
    from rich.table import Column, Table

    from scenegpi.paper.labelling.models import build, count_parameters, describe

    task = plan.task
    columns = "network", Column("parameters", justify="right"), "sizes"
    table = Table(*columns, title=f"networks for n = {task.nodes}, K = {task.sets}", title_justify="left")
    for model in dict.fromkeys(cell.model for cell in plan.cells):
        table.add_row(model, f"{count_parameters(build(model, task)):,}", describe(model, task))
    console.print(table)


def _run(plan: Plan, folder: Path, console: Console) -> list[dict[str, Any]]:
    """Runs the missing cells and prints a line for each."""
    from scenegpi.paper.labelling.experiment import run
    from scenegpi.progress import watched

    results, read = [], 0
    for result, ran in watched(run(plan.cells, folder), "cells", len(plan.cells)):
        results.append(result)
        read += not ran
        if ran:
            name = "{model}, n = {nodes}, {samples:,} samples, seed {seed}".format(**result)
            spent = f"{result['steps']:,} steps, {result['wall_seconds']:.0f} s"
            console.print(f"{name}: {result['accuracy']:.2%} ({spent}, {result['stopped']})")
    if read:
        console.print(f"{counted(read, 'cell')} finished before, read from {folder}")
    return results


def _show(results: dict[str, Any], out: Path) -> None:
    from rich.table import Column, Table

    from scenegpi.paper.figures.curves import draw_labelling
    from scenegpi.paper.labelling.report import curve, summary_rows

    console, cells = make_console(), results["cells"]
    for nodes in sorted({cell["nodes"] for cell in cells}):
        models = [m for m in results["models"] if curve(cells, m, nodes)]
        columns = [Column(name, justify="right") for name in ("training graphs", *models)]
        title = f"accuracy, n = {nodes}: mean over seeds (lowest to highest)"
        table = Table(*columns, title=title, title_justify="left")
        for row in summary_rows(cells, nodes, _spread, models):
            table.add_row(*row)
        slowest = [max(point.high for point in curve(cells, model, nodes, "cpu_seconds")) for model in models]
        table.add_section()
        table.add_row("CPU s, slowest", *(f"{seconds:.0f}" for seconds in slowest))
        gaps = [max(point.high for point in curve(cells, model, nodes, "order_gap")) for model in models]
        table.add_row("order gap", *(f"{gap:.1e}" for gap in gaps))
        console.print(table)
    console.print("order gap: largest change of a label's probability when the nodes are listed in another order")
    console.print(f"no network of the form rho(z_k, g) can exceed {results['strict_ceiling']:.2%} here (n = 10)")
    if results.get("plan") == "quick":
        console.print("quick: 400 steps each, too few for the LSTM and the strict form to reach their best")
    for path in draw_labelling(results, out):
        say(f"{path}: the curves")


def _spread(point: Point | None) -> str:
    if point is None:
        return ""
    mean = f"{point.mean:.2%}"
    return mean if point.seeds == 1 else f"{mean} ({point.low:.2%} to {point.high:.2%})"
