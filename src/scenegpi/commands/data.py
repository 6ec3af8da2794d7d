"""`scenegpi data`: inspect, check, convert and show data sets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scenegpi.commands.render import render
from scenegpi.commands.terminal import make_console, quiet, say, say_json
from scenegpi.errors import counted

if TYPE_CHECKING:
    from scenegpi.data import Dataset, Report
    from scenegpi.graph import SceneGraph

app = typer.Typer(help="Inspect, check, convert and show data sets; draw synthetic scenes.", no_args_is_help=True)
app.command()(render)

MOST_SHOWN = 200
SOURCE_HELP = "A data set: a file or a folder of any known format, or a store."
Source = Annotated[Path, typer.Argument(help=SOURCE_HELP, show_default=False, readable=False)]
Format = Annotated[str | None, typer.Option(help="The format, if it is not clear from the path.", show_default=False)]
Split = Annotated[str | None, typer.Option(help="Only train, val or test.", show_default=False)]
Validation = Annotated[int, typer.Option(help="Number of training images to use as val (5000 is common).", min=0)]
DropEmpty = Annotated[bool, typer.Option(help="Leave out images without a box or without a relation.")]
Overlap = Annotated[bool, typer.Option(help="Keep only relations whose boxes overlap.")]
Duplicates = Annotated[str, typer.Option(help="Repeated relations: keep, drop, or sample one predicate per pair.")]
Photos = Annotated[Path | None, typer.Option(help="Folder of the photos.", show_default=False)]
Names = Annotated[Path | None, typer.Option(help="Class names for detector output.", show_default=False)]
Sizes = Annotated[Path | None, typer.Option(help="JSON of image sizes, for boxes in fractions.", show_default=False)]
Strict = Annotated[bool, typer.Option(help="Stop at the first defect instead of leaving the image out.")]


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
    rows: Annotated[int, typer.Option(help="Number of classes and predicates to list; 0 for all.", min=0)] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Numbers of images, boxes and relations, and histograms of classes, predicates and boxes per image."""

    from scenegpi.data import statistics

    dataset = _open(
        path,
        format=format,
        split=split,
        validation=validation,
        drop_empty=drop_empty,
        overlap=overlap,
        duplicates=duplicates,
        images=photos,
        names=names,
        sizes=sizes,
        strict=strict,
    )
    figures = statistics(dataset)
    if json:
        say_json(figures.to_dict())
        return
    from scenegpi.commands.tables import print_statistics

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
    warnings: Annotated[bool, typer.Option(help="Also list warnings, which are harmless.")] = True,
) -> None:
    """List every defect with file, image and field. Exit code 1 if there is any, 2 if the data can't be read."""
    import sys

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
    target: Annotated[Path, typer.Argument(help="What to write: x.jsonl, x.json (COCO) or a folder (Visual Genome).")],
    to: Annotated[
        str | None,
        typer.Option(
            help="jsonl, coco, visual-genome, label-studio, sgbench, lightrag, graphrag or cypher.", show_default=False
        ),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="For Label Studio: what goes before a picture's name, as /data/local-files/?d=photos/.")
    ] = "",
    force: Annotated[bool, typer.Option(help="Replace what is there.")] = False,
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
    """Convert a data set from any known format to JSON lines, COCO, Visual Genome or a graph database's files."""
    from scenegpi.data import convert as write

    dataset = _open(
        path,
        format=format,
        split=split,
        validation=validation,
        drop_empty=drop_empty,
        overlap=overlap,
        duplicates=duplicates,
        images=photos,
        names=names,
        sizes=sizes,
        strict=strict,
    )

    def counted_graphs(graphs: Iterable[SceneGraph]) -> Iterable[SceneGraph]:
        from scenegpi.progress import watched

        return watched(graphs, "converting", len(dataset))

    count = write(dataset, target, to, force, counted_graphs, prefix)
    say(f"{target}: {counted(count, 'image')} written")
    _say_left_out(dataset.report)


@app.command()
@quiet()
def show(
    path: Annotated[Path | None, typer.Argument(help=f"{SOURCE_HELP} By default the sample.", readable=False)] = None,
    image: Annotated[str | None, typer.Argument(help="The image's id or file name.", show_default=False)] = None,
    index: Annotated[int, typer.Option(help="Or its position in the data set, from 0.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="Also draw it to this .png or .svg.", show_default=False)] = None,
    top: Annotated[int, typer.Option(help="Show at most this many relations.", min=1)] = 20,
    format: Format = None,
    split: Split = None,
    validation: Validation = 0,
    photos: Photos = None,
    names: Names = None,
    sizes: Sizes = None,
) -> None:
    """Draw one image's graph in the terminal, and with --out as a picture (on its photo, if that is found)."""

    from scenegpi.data import DataError, sample_path
    from scenegpi.viz.terminal import render

    where = {"format": format, "images": photos, "names": names, "sizes": sizes}
    dataset = _open(path or sample_path(), split=split, validation=validation, **where)
    at = dataset.find(image) if image is not None else index
    if at >= len(dataset):
        first = dataset.report.first_error
        said = f"; left out, for one: {first.field}: {first.message}" if first else ""
        raise DataError(dataset.path, f"image {at}: there are {len(dataset)}, counted from 0{said}")
    graph = _fitting(dataset[at], top)
    console = make_console()
    console.print(render(graph, columns=min(max(console.width - 1, 16), 110), top=top))
    if out is not None:
        from scenegpi.viz.picture import draw

        photo = dataset.image_path(at)
        draw(graph, out, photo, top)
        say(f"{out}: drawn{f' on {photo}' if photo else ' without a photo (none was found)'}")


def _fitting(graph: SceneGraph, top: int) -> SceneGraph:
    """The graph, or of one with more boxes than anyone could see those of the best relations and the largest."""
    import numpy as np

    if len(graph) <= MOST_SHOWN:
        return graph
    print(f"{len(graph):,} boxes: those of the best relations and the largest are shown, {MOST_SHOWN} in all")
    ends = [end for triplet in graph.triplets(top) for end in (triplet.subject_index, triplet.object_index)]
    largest = np.argsort(-np.prod(graph.boxes[:, 2:] - graph.boxes[:, :2], axis=1), kind="stable").tolist()
    return graph.subset(sorted(list(dict.fromkeys([*ends, *largest]))[:MOST_SHOWN]))


def _open(path: Path, **options: Any) -> Dataset:
    from scenegpi.data import open_dataset
    from scenegpi.store.folder import is_store

    if not is_store(path):
        return open_dataset(path, **options)
    from scenegpi.store import Store

    photos = options.get("images")
    return Store(path, [photos] if photos else []).dataset()


def _say_left_out(report: Report) -> None:
    if report.skipped:
        say(f"{counted(report.skipped, 'image')} left out; the first: {report.first_error}", error=True)
        say(f"`scenegpi data validate {report.file}` lists them all", error=True)
