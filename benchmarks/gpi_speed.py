"""How fast the GPI layers are, at the sizes of the paper's linguistic scene-graph predictor.

    python benchmarks/gpi_speed.py [--quick] [--case 12 --case mix ...] [--variant ...] [--threads 1] [--json FILE]

Times are milliseconds per image in a batch of 20, two steps; with one thread CPU time, which a busy machine disturbs
less, otherwise wall time. Variants take turns, and each turn measures this machine's matrix product too; medians are
shown. "Compiled" is what `torch.compile` makes of ours; its compilation is not counted. The fraction is the least
number of multiply-adds, divided by the time, over the rate of that product.
"""

import json
import multiprocessing
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.table import Table

from gpi_cases import COMPILED, MIX, VARIANTS, Images, Steps, multiply_adds, peak_memory, variant

CASES = {"12": (12,) * 20, "30": (30,) * 20, "60": (60,) * 20, "mix": MIX}
PATIENCE = 20.0  # seconds of measuring after which a variant takes no further turn
TARGETS = (
    "wanted: per image / ours 3.3 at n = 12 and 3.6 on the mix; 1,000 entities in 2 GB; a batch of n = 60 in 2.2 GB"
)


def main(
    case: Annotated[list[str] | None, typer.Option(help="12, 30, 60 or mix; all if not given")] = None,
    variants: Annotated[
        list[str] | None,
        typer.Option("--variant", help=f"beside ours: some of {', '.join(VARIANTS[1:])}; all if not given"),
    ] = None,
    quick: Annotated[bool, typer.Option(help="n = 12 and the mix, one turn, no memory")] = False,
    memory: Annotated[bool, typer.Option(help="measure peak memory, each variant in its own process")] = True,
    large: Annotated[bool, typer.Option(help="one graph of 1,000 entities, forward")] = True,
    threads: Annotated[int, typer.Option(help="threads of every variant and of the matrix product")] = 1,
    turns: Annotated[int, typer.Option(help="how often the variants take turns")] = 3,
    json_file: Annotated[Path | None, typer.Option("--json", help="write the figures to this file")] = None,
) -> None:
    """Prints the tables; see the module's head for what they mean."""
    torch.set_num_threads(threads)
    console = Console(width=130)
    clock = time.process_time if threads == 1 else time.perf_counter
    names = ["12", "mix"] if quick else list(CASES)
    results = {}
    for name in case or names:
        rows = measure(CASES[name], 1 if quick else turns, clock, ["ours", *(variants or VARIANTS[1:])])
        if memory and not quick:
            for key, row in rows.items():
                row["memory_mb"] = in_own_process(key, CASES[name], True, threads)[0]
        results[name] = rows
        console.print(table(name, rows, "CPU" if threads == 1 else "wall", threads))
    console.print(TARGETS)
    if large and not quick:
        added, peak = in_own_process("ours, chunked", (1000,), False, threads)
        results["1000 entities"] = {"added_mb": added, "peak_mb": peak}
        console.print(
            f"1,000 entities, 999,000 pairs, forward, two steps: peak of the whole process {peak:,.0f} MB "
            f"(wanted: 2,048), {added:,.0f} MB of it for the call"
        )
    if json_file:
        about = {"threads": threads, "torch": torch.__version__, "machine": platform.processor() or platform.machine()}
        json_file.write_text(json.dumps({"about": about, "cases": results}, indent=1) + "\n")
        console.print(f"wrote {json_file}")


def measure(
    sizes: Sequence[int], turns: int, clock: Callable[[], float], variants: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Every variant's times, ratios to ours and fractions of the matrix product's rate, and its distance from ours."""
    small, images = Images((4, 4)), Images(sizes)
    calls = {}
    for name in variants:
        calls[name] = variant(name, images)
        # Ours is measured in the steady state of a training loop; the others have none but the allocator's.
        batch, (_, call) = (images, calls[name]) if name.startswith("ours") else (small, variant(name, small))
        batch.loss(call()).backward()
        if name == COMPILED:  # once more for the forward pass alone
            with torch.no_grad():
                call()
    samples: dict[str, list[dict[str, float]]] = {name: [] for name in variants}
    reference = None
    for turn in range(turns):
        for name, (model, call) in calls.items():
            if turn and sum(sample["seconds"] for sample in samples[name]) > PATIENCE:
                continue
            rate, start = product_rate(clock), clock()
            with torch.no_grad():
                steps = call()
            forward, start = clock() - start, clock()
            images.loss(call()).backward()
            both = clock() - start
            rate = (rate + product_rate(clock)) / 2
            model.zero_grad()
            least = multiply_adds(sizes, name == "ours, dense words")
            reference = reference or steps
            sample = {
                "forward_ms": 1e3 * forward / len(sizes),
                "both_ms": 1e3 * both / len(sizes),
                "forward_fraction": least[0] / forward / rate,
                "both_fraction": least[1] / both / rate,
                "rate_gmac": rate / 1e9,
                "distance": distance(reference, steps),
                "seconds": forward + both,
            }
            samples[name].append(sample)
    rows = {
        name: {key: statistics.median(sample[key] for sample in taken) for key in taken[0]}
        for name, taken in samples.items()
    }
    for row in rows.values():
        for mode in ("forward", "both"):
            row[f"{mode}_ratio"] = row[f"{mode}_ms"] / rows["ours"][f"{mode}_ms"]
    return rows


def distance(ours: Steps, theirs: Steps) -> float:
    """The largest difference of any logit of any step."""
    pairs = zip([*ours[0], *ours[1]], [*theirs[0], *theirs[1]], strict=True)
    return max(float((a - b).abs().max()) for a, b in pairs)


def product_rate(clock: Callable[[], float]) -> float:
    """Multiply-adds a second of a plain matrix product: the better of two shapes, each for a fifth of a second."""
    rates = []
    for rows, inner, columns in ((1024, 1024, 1024), (4096, 500, 500)):
        left, right, out = torch.randn(rows, inner), torch.randn(inner, columns), torch.empty(rows, columns)
        count, start = 0, clock()
        while clock() - start < 0.2:
            torch.mm(left, right, out=out)
            count += 1
        rates.append(count * rows * inner * columns / (clock() - start))
    return max(rates)


def in_own_process(name: str, sizes: Sequence[int], backward: bool, threads: int) -> tuple[float, float]:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(peak_memory, (name, sizes, backward, threads))


def table(case: str, rows: dict[str, dict[str, float]], clock: str, threads: int) -> Table:
    sizes = CASES[case]
    title = f"n = {case}" if case != "mix" else f"mix, {min(sizes)} to {max(sizes)} entities"
    rate = statistics.median(row["rate_gmac"] for row in rows.values())
    out = Table(title=f"{title}, {len(sizes)} images, {threads} thread(s); matrix product {rate:.0f} G multiply-adds/s")
    out.add_column("variant")
    headings = [f"forward {clock} ms", "/ ours", "fraction", f"fwd + bwd {clock} ms", "/ ours", "fraction"]
    for heading in [*headings, "peak MB", "distance"]:
        out.add_column(heading, justify="right")
    for name, row in rows.items():
        ours = name.startswith("ours")
        cells = []
        for mode in ("forward", "both"):
            fraction = f"{row[f'{mode}_fraction']:.2f}" if ours else ""
            cells += [f"{row[f'{mode}_ms']:.2f}", f"{row[f'{mode}_ratio']:.2f}", fraction]
        memory = f"{row['memory_mb']:,.0f}" if "memory_mb" in row else ""
        out.add_row(name, *cells, memory, f"{row['distance']:.0e}")
    return out


if __name__ == "__main__":
    typer.run(main)
