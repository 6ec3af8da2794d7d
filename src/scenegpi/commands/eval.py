"""`scenegpi eval`: scores predictions from a file, of any tool. Parses, calls the metrics, prints, writes JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scenegpi.metrics.protocol import Constraint, Empty, Match, MetricError, Protocol, Several, Task

if TYPE_CHECKING:
    from rich.table import Table

    from scenegpi.data import Dataset
    from scenegpi.graph import SceneGraph
    from scenegpi.metrics.intervals import Difference
    from scenegpi.metrics.result import Result

Pairs = Iterator[tuple["SceneGraph", "SceneGraph"]]


def evaluate_file(
    predictions: Path,
    protocol: Protocol,
    *,
    data: Path | None = None,
    split: str | None = None,
    train: Path | None = None,
    allow_missing: bool = False,
    bootstrap: int = 1000,
    seed: int = 0,
    progress: bool = False,
) -> Result:
    """Score a file of predictions; DataError, one line that names file, image and field, if that can't be done.

    Args:
        predictions: an npz file that holds the ground truth too (`scenegpi.data.evaluation_npz`), or JSON lines.
        protocol: how to score.
        data: the ground truth, anything that `open_dataset` opens. Images are matched by id, or by file name.
        split: of `data`.
        train: the training data, whose "train" split (or all of it) tells what is zero-shot, and head, body and tail.
        allow_missing: images of `data` that have no prediction count as images without predictions.
        bootstrap, seed: of the intervals.
        progress: show a bar on the terminal.
    """
    from scenegpi.data import DataError, open_dataset
    from scenegpi.metrics.state import Plan, RecallState

    options: dict[str, Any] = {"bootstrap": bootstrap, "seed": seed}
    if predictions.suffix.lower() == ".npz":
        if data is not None or split is not None or train is not None:
            raise DataError(predictions, "an npz file holds its own ground truth; --data, --split, --train don't go")
        from scenegpi.data.evaluation_npz import EvaluationNpz
        from scenegpi.metrics.zero_shot import ZeroShot

        file = EvaluationNpz(predictions, protocol.task)
        if file.zero_shot is not None:
            options["zero_shot"] = ZeroShot.unseen(file.zero_shot)
        state = RecallState(Plan(protocol, file.vocabulary, **options))
        pairs: Pairs = ((file.prediction(i), file.target(i)) for i in range(len(file)))
        total = len(file)
    else:
        if data is None:
            raise DataError(predictions, "the ground truth is missing, give it with --data (or use an npz file)")
        truth = open_dataset(data, split)
        found = open_dataset(predictions, vocabulary=truth.vocabulary, strict=True, trust=True)
        if train is not None:
            options |= _training(train, truth)
        state = RecallState(Plan(protocol, truth.vocabulary, **options))
        pairs = _matched(found, truth, allow_missing)
        total = len(truth)
    try:
        state.stream(_shown(pairs, total, progress))
    except MetricError as error:
        raise DataError(predictions, str(error)) from None
    return state.result()


def evaluate_model(
    source: str,
    protocol: Protocol,
    *,
    data: Path | None,
    split: str | None = None,
    train: Path | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    progress: bool = False,
) -> Result:
    """Run a model (a folder or a shipped name) on a data set and score it; the other arguments as for a file."""
    from scenegpi.arrays import GraphError
    from scenegpi.data import DataError, open_dataset
    from scenegpi.metrics.state import Plan, RecallState
    from scenegpi.models import load_model, predict_dataset

    if data is None:
        raise DataError(source, "which images? Give a data set with --data")
    if protocol.task == "sgdet":
        raise DataError(source, "task sgdet: a model labels boxes that are given, it finds none (predcls or sgcls)")
    model = load_model(source)
    truth = open_dataset(data, split)
    options = _training(train, truth) if train is not None else {}
    state = RecallState(Plan(protocol, truth.vocabulary, bootstrap=bootstrap, seed=seed, **options))
    try:
        state.stream(
            _shown(zip(predict_dataset(model, truth, protocol.task), truth, strict=True), len(truth), progress)
        )
    except (MetricError, GraphError) as error:
        raise DataError(data, str(error)) from None
    return state.result()


def _matched(found: Dataset, truth: Dataset, allow_missing: bool) -> Pairs:
    """Each prediction with its ground truth, by image id or file name; every image of the data exactly once."""
    from scenegpi.data import DataError
    from scenegpi.metrics.alignment import Alignment

    place: dict[str, int] = {}
    for i, graph in enumerate(truth):
        for name in _names(graph):
            if place.setdefault(name, i) != i:
                raise DataError(truth.path, f"two images are called {name!r:.60}")
    align = Alignment(truth.vocabulary)
    seen: set[int] = set()
    for graph in found:
        names = _names(graph)
        if not names:
            raise MetricError("a prediction without image id or file name")
        i = next((place[name] for name in names if name in place), -1)
        if i < 0:
            raise MetricError(f"image {names[0]!r:.60} is not in {truth.path} ({len(truth):,} images)")
        if i in seen:
            raise MetricError(f"image {names[0]!r:.60} is predicted twice")
        seen.add(i)
        try:
            yield align(graph), truth[i]
        except MetricError as error:
            raise MetricError(f"image {names[0]!r:.60}: {error}") from None
    missing = [i for i in range(len(truth)) if i not in seen]
    if missing and not allow_missing:
        raise MetricError(
            f"no prediction for {len(missing):,} of {len(truth):,} images, the first is image "
            f"{_names(truth[missing[0]])[0]!r:.60} (--allow-missing counts them as images without predictions)"
        )
    for i in missing:
        target = truth[i]
        yield target.replace(relations=(), relation_scores=None, pairs=None, pair_dist=None), target


def _names(graph: SceneGraph) -> list[str]:
    return [str(name) for name in (graph.image_id, graph.file) if name is not None]


def _training(train: Path, truth: Dataset) -> dict[str, Any]:
    """Zero-shot triplets and predicate groups from the training data."""
    import numpy as np

    from scenegpi.data import open_dataset
    from scenegpi.metrics.alignment import Alignment
    from scenegpi.metrics.zero_shot import ZeroShot, predicate_groups

    graphs = open_dataset(train)
    if (graphs.split_codes() == 0).any():
        graphs = graphs.split("train")
    align = Alignment(truth.vocabulary)
    counts = np.zeros(len(truth.vocabulary.predicates), dtype=np.int64)

    def counted() -> Iterator[SceneGraph]:
        for graph in map(align, graphs):
            np.add.at(counts, graph.relations[:, 2], 1)
            yield graph

    zero_shot = ZeroShot.from_training(counted())
    return {"zero_shot": zero_shot, "groups": predicate_groups(counts)}


def _shown(pairs: Pairs, total: int, progress: bool) -> Pairs:
    if not progress:
        return pairs
    from rich.console import Console
    from rich.progress import track

    return iter(track(pairs, "scoring", total, console=Console(stderr=True), transient=True))


def result_table(result: Result) -> Table:
    """The figures of a result for a terminal: a line for each family, a column for each K, in percent."""
    cells = {}
    for name, value in result.figures.items():
        low, high = result.intervals.get(name, (nan, nan))
        cells[name] = "–" if isnan(value) else f"{100 * value:.1f}"
        cells[name] += "" if isnan(low) else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return _family_table(cells, result.protocol.ks, "in percent")


def difference_table(differences: Mapping[str, Difference], ks: tuple[int, ...]) -> Table:
    """Paired differences in points, the plain figures only; a star where the interval leaves 0 out."""
    cells = {}
    for name, found in differences.items():
        if "-" not in name:
            star = "*" if found.low > 0 or found.high < 0 else " "
            cells[name] = f"{100 * found.difference:+.1f} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]{star}"
    return _family_table(cells, ks, "difference")


def _family_table(cells: Mapping[str, str], ks: tuple[int, ...], title: str) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(title, no_wrap=True)
    for k in ks:
        table.add_column(f"@{k}", justify="right")
    lines: dict[str, dict[int, str]] = {}
    for name, cell in cells.items():
        family, _, rest = name.partition("@")
        number, _, tail = rest.partition(",")
        if int(number) in ks:
            lines.setdefault(f"{family} {tail}".strip(), {})[int(number)] = cell
        else:
            lines.setdefault(name, {})[ks[0]] = cell
    for name, line in lines.items():
        table.add_row(name, *(escape(line.get(k, "")) for k in ks))
    return table


def write_json(result: Result, file: Path, **extra: Any) -> None:
    """The result as JSON, whole or not at all."""
    from scenegpi.data.files import whole_file

    with whole_file(file) as part:
        part.write_text(json.dumps({**extra, **result.to_dict()}, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def eval_command(
    task: Annotated[Task, typer.Option(help="What the system was given: boxes and labels, boxes, or nothing.")],
    predictions: Annotated[
        Path | None, typer.Argument(help="JSON lines, or an npz file that holds the ground truth too.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="In place of a file: run this model, a folder or a name.")] = None,
    data: Annotated[Path | None, typer.Option(help="The ground truth, for JSON lines: any known data set.")] = None,
    split: Annotated[str | None, typer.Option(help="Which split of the data: train, val or test.")] = None,
    train: Annotated[Path | None, typer.Option(help="Training data, for zR@K and head, body, tail.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all figures to this file.")] = None,
    k: Annotated[str, typer.Option(help="The K's of recall@K.")] = "20,50,100",
    constraint: Annotated[Constraint, typer.Option(help="One predicate a pair, all of them (ng), or both.")] = "both",
    empty: Annotated[
        Empty, typer.Option(help="Images without predictions: 0, left out, or as in the field.")
    ] = "field",
    several: Annotated[Several, typer.Option(help="Several predicates of a pair in a list of triplets.")] = "refuse",
    per_pair: Annotated[str, typer.Option(help="Predicates a pair of VRD's predicate detection: 1,70.")] = "",
    iou: Annotated[float, typer.Option(help="How much boxes must overlap.")] = 0.5,
    match: Annotated[Match, typer.Option(help="Boxes that overlap will do, or only the very boxes.")] = "overlap",
    allow_missing: Annotated[bool, typer.Option("--allow-missing", help="Images may lack a prediction.")] = False,
    bootstrap: Annotated[int, typer.Option(help="Replicates of the 95% intervals; 0 for none.", min=0)] = 1000,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    against: Annotated[Path | None, typer.Option(help="Another system's predictions, for a paired comparison.")] = None,
    published: Annotated[bool, typer.Option("--published", help="Show published figures beside.")] = False,
) -> None:
    """Score predictions, or a model, against ground truth: R@K, mR@K, zR@K, A@K, with and without graph constraint."""
    if (predictions is None) == (model is None):
        raise typer.BadParameter("give a file of predictions, or a model with --model")
    file = Path(model or "") if predictions is None else predictions
    name = file.name if data is None else f"{data}{f' ({split})' if split else ''}"
    ks, per = _numbers(k, "--k"), _numbers(per_pair, "--per-pair")
    try:
        protocol = Protocol(task, constraint, ks, iou, empty, several, per_pair=per, match=match, data=name)
    except MetricError as error:
        raise typer.BadParameter(str(error)) from None
    score = partial(
        evaluate_file,
        protocol=protocol,
        data=data,
        split=split,
        train=train,
        allow_missing=allow_missing,
        bootstrap=bootstrap,
        seed=seed,
        progress=sys.stderr.isatty(),
    )
    if model is None:
        result = score(file)
    else:
        options = {key: value for key, value in score.keywords.items() if key != "allow_missing"}
        result = evaluate_model(model, **options)
    extra: dict[str, Any] = {"predictions" if model is None else "model": str(file), "task": task}
    differences: dict[str, Difference] = {}
    if against is not None:
        differences = _compared(score(against), result, against)
        extra["against"] = {"predictions": str(against), "differences": {n: asdict(d) for n, d in differences.items()}}
    if json_file is not None:
        write_json(result, json_file, **extra)
    _print(result, differences, against, published)
    if json_file is not None:
        print(f"Wrote {json_file}")


def _compared(other: Result, result: Result, file: Path) -> dict[str, Difference]:
    from scenegpi.data import DataError
    from scenegpi.metrics.intervals import compare

    try:
        return compare(other, result)
    except MetricError as error:
        raise DataError(file, str(error)) from None


def _print(result: Result, differences: dict[str, Difference], against: Path | None, published: bool) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(result_table(result))
    console.print(f"{result.images:,} images, {result.counts['relations']:,} relations. {result.protocol}.")
    for note in [*result.notes, *([f"Zero-shot: {result.zero_shot}."] if result.zero_shot else [])]:
        console.print(note)
    if differences:
        console.print(difference_table(differences, result.protocol.ks))
        console.print(f"In points, to {against} on the same images; * the 95% interval leaves 0 out.", soft_wrap=True)
    if published:
        from scenegpi.metrics.published import published as reported
        from scenegpi.metrics.table import figure_table

        names = [name for name in ("R@50", "R@100", "ngR@50", "ngR@100") if name in result.figures]
        console.print(figure_table({"yours": result}, names, reported(result.protocol.task), mark=True).rich())


def _numbers(text: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.replace(",", " ").split())
    except ValueError:
        raise typer.BadParameter(f"{option}: expected whole numbers with commas, found {text!r:.60}") from None
