"""`scenegpi data`: inspect, check, convert and show data sets."""

from __future__ import annotations

import sys
from functools import partial
from os import cpu_count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from scenegpi.commands.options import File, Format, Photos, PrintJson, Split, Text
from scenegpi.commands.terminal import make_console, quiet, say, say_json
from scenegpi.errors import DataError, counted, naming
from scenegpi.progress import watched

if TYPE_CHECKING:
    from scenegpi.data import Dataset, Report
    from scenegpi.graph import SceneGraph

app = typer.Typer(help="Inspect, check, convert and show data sets; draw synthetic scenes.", no_args_is_help=True)

MOST_SHOWN = 200
SOURCE_HELP = "A data set: a file or a folder of any known format, or a store."
PREFIX = "For Label Studio: prefix of each picture's name, such as /data/local-files/?d=photos/."
KINDS = "jsonl, coco, visual-genome, label-studio, sgbench, lightrag or graphrag."
Source = Annotated[Path, Argument(help=SOURCE_HELP, readable=False)]
Validation = Annotated[int, Option(help="Number of training images to use as val (5000 is common).", min=0)]
DropEmpty = Annotated[bool, Option(help="Leave out images without a box or without a relation.")]
Overlap = Annotated[bool, Option(help="Keep only relations whose boxes overlap.")]
Rule = Literal["keep", "drop", "sample"]
Duplicates = Annotated[Rule, Option(help="Repeated relations: keep, drop, or sample one predicate per pair.")]
Names = Annotated[File, Option(help="Class names for detector output.")]
Sizes = Annotated[File, Option(help="JSON of image sizes, for boxes in fractions.")]
Strict = Annotated[bool, Option(help="Stop at the first defect instead of leaving the image out.")]


@app.command()
@quiet()
def stats(
    path: Source,
    format: Format = None,
    split: Split = None,
    validation: Validation = 0,
    drop_empty: DropEmpty = False,
    overlap: Overlap = False,
    duplicates: Duplicates = "keep",
    photos: Photos = None,
    names: Names = None,
    sizes: Sizes = None,
    strict: Strict = False,
    rows: Annotated[int, Option(help="Number of classes and predicates to list; 0 for all.", min=0)] = 20,
    json: PrintJson = False,
) -> None:
    """Count images, boxes and relations; show histograms of classes, predicates and boxes per image."""
    from scenegpi.commands.tables import print_statistics
    from scenegpi.data import statistics

    kept = {"drop_empty": drop_empty, "overlap": overlap, "duplicates": duplicates, "strict": strict}
    dataset = _open(path, split, format, photos, names, sizes, validation=validation, **kept)
    figures = statistics(dataset)
    if json:
        say_json(figures.to_dict())
        return
    print_statistics(dataset, figures, rows)
    _say_left_out(dataset.report)


@app.command()
@quiet()
def validate(
    path: Source,
    format: Format = None,
    photos: Photos = None,
    names: Names = None,
    sizes: Sizes = None,
    warnings: Annotated[bool, Option(help="Also list warnings, which are harmless.")] = True,
) -> None:
    """List every defect with its file, image and field. Exit code 1 if there are any, 2 if the data can't be read."""
    from scenegpi.data import validate as check

    report = check(path, format=format, images=photos, names=names, sizes=sizes)
    for defect in report.defects:
        if defect.severity == "error" or warnings:
            sys.stdout.write(f"{defect.severity}: {defect}\n")
    hidden = report.errors + report.warnings - len(report.defects)
    if hidden:
        say(f"... and {hidden:,} more")
    left = f", {counted(report.skipped, 'image')} can't be used" if report.skipped else ""
    say(f"{path}: {counted(report.errors, 'error')}, {counted(report.warnings, 'warning')}{left}")
    if report.errors:
        raise typer.Exit(1)


@app.command()
@quiet()
def convert(
    path: Source,
    target: Annotated[Path, Argument(help="What to write: x.jsonl, x.json (COCO) or a folder (Visual Genome).")],
    to: Annotated[Text, Option(help=KINDS)] = None,
    prefix: Annotated[str, Option(help=PREFIX)] = "",
    force: Annotated[bool, Option(help="Overwrite the target if it exists.")] = False,
    format: Format = None,
    split: Split = None,
    validation: Validation = 0,
    drop_empty: DropEmpty = False,
    overlap: Overlap = False,
    duplicates: Duplicates = "keep",
    photos: Photos = None,
    names: Names = None,
    sizes: Sizes = None,
    strict: Strict = False,
) -> None:
    """Convert a data set from any known format to another, and say what that cannot hold."""
    from scenegpi.data import convert as write

    kept = {"drop_empty": drop_empty, "overlap": overlap, "duplicates": duplicates, "strict": strict}
    dataset = _open(path, split, format, photos, names, sizes, validation=validation, **kept)
    watch = partial(watched, what="converting", total=len(dataset))
    count = write(dataset, target, to, force, watch, prefix, partial(say, error=True))
    say(f"{target}: {counted(count, 'image')} written")
    _say_left_out(dataset.report)


@app.command()
@quiet()
def show(
    path: Annotated[File, Argument(help=f"{SOURCE_HELP} Default: the sample.", readable=False)] = None,
    image: Annotated[Text, Argument(help="The image's id or file name.")] = None,
    index: Annotated[int, Option(help="Or the image's position in the data set, from 0.", min=0)] = 0,
    out: Annotated[File, Option(help="Also draw it to this .png or .svg.")] = None,
    top: Annotated[int, Option(help="Show at most this many relations.", min=1)] = 20,
    format: Format = None,
    split: Split = None,
    validation: Validation = 0,
    photos: Photos = None,
    names: Names = None,
    sizes: Sizes = None,
) -> None:
    """Draw one image's graph in the terminal, and with --out as a picture (on its photo, if that is found)."""
    from scenegpi.data import sample_path
    from scenegpi.viz.characters import render

    dataset = _open(path or sample_path(), split, format, photos, names, sizes, validation=validation)
    at = dataset.find(image) if image is not None else index
    if at >= len(dataset):
        first = dataset.report.first_error
        said = f"; left out, for one: {first.field}: {first.message}" if first else ""
        raise DataError(
            dataset.path, f"image {at}: the data set has {counted(len(dataset), 'image')}, counted from 0{said}"
        )
    graph = _fitting(dataset[at], top)
    console = make_console()
    console.print(render(graph, columns=min(max(console.width - 1, 16), 110), top=top))
    if out is not None:
        from scenegpi.viz.picture import draw

        photo = dataset.image_path(at)
        draw(graph, out, photo, top)
        say(f"{out}: drawn {f'on {photo}' if photo else 'without its photo, which was not found'}")


@app.command()
def render(
    out: Annotated[Path, Option(help="Folder to write; it must be empty or not exist yet.")],
    scenes: Annotated[int, Option(help="Number of scenes.", min=1)] = 1000,
    seed: Annotated[int, Option(help="Random seed.", min=0)] = 0,
    lookalike: Annotated[float, Option(help="Fraction of objects drawn to resemble others of their family.")] = 0.85,
    damage: Annotated[float, Option(help="Strength of blur, noise and lighting changes, from 0 to 1.")] = 0.3,
    validation: Annotated[float, Option(help="Fraction of the scenes used as val.")] = 0.1,
    test: Annotated[float, Option(help="Fraction of the scenes used as test.")] = 0.2,
    jobs: Annotated[int, Option(help="Worker processes; 0 for one per core.", min=0)] = 0,
) -> None:
    """Draw scenes of people, animals and things: JPEGs with boxes, labels and relations in Visual Genome's layout."""
    from scenegpi.paper.rendered import SceneOptions, render_folder

    with naming(out, ValueError):
        options = SceneOptions(lookalike, damage)
    jobs = jobs or cpu_count() or 1
    watch = partial(watched, what="drawing", total=scenes)
    graphs = render_folder(out, scenes, seed, options, validation, test, jobs, watch)
    boxes, relations = sum(map(len, graphs)), sum(len(graph.relations) for graph in graphs)
    parts = ((len(graphs), "scene"), (boxes, "box"), (relations, "relation"))
    say(f"{out}: wrote {', '.join(counted(*part) for part in parts)} (seed {seed})")
    say(f"{out / 'images'}: the images; show one with: scenegpi data show {out} --out scene.png")


def _fitting(graph: SceneGraph, top: int) -> SceneGraph:
    """The graph, with at most MOST_SHOWN boxes: those in the best relations, then the largest."""
    import numpy as np

    if len(graph) <= MOST_SHOWN:
        return graph
    print(f"{len(graph):,} boxes; {MOST_SHOWN} are shown: those in the best relations, then the largest")
    ends = [end for triplet in graph.triplets(top) for end in (triplet.subject_index, triplet.object_index)]
    largest = np.argsort(-np.prod(graph.boxes[:, 2:] - graph.boxes[:, :2], axis=1), kind="stable").tolist()
    return graph.subset(sorted(list(dict.fromkeys([*ends, *largest]))[:MOST_SHOWN]))


def _open(path: Path, split: Text, format: Text, photos: File, names: File, sizes: File, **options: Any) -> Dataset:
    from scenegpi.data import open_dataset
    from scenegpi.store.folder import is_store

    if is_store(path):
        from scenegpi.store import Store

        return Store(path, [photos] if photos else []).dataset()
    return open_dataset(path, split, format=format, images=photos, names=names, sizes=sizes, **options)


def _say_left_out(report: Report) -> None:
    if report.skipped:
        say(f"{counted(report.skipped, 'image')} left out; the first: {report.first_error}", error=True)
        say(f"`scenegpi data validate {report.file}` lists them all", error=True)
