"""`scenegpi data`: look at, check, convert and show data sets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scenegpi.commands.quiet import quiet
from scenegpi.commands.render import render

if TYPE_CHECKING:
    from scenegpi.data import Dataset, Report
    from scenegpi.graph import SceneGraph

app = typer.Typer(help="Look at, check, convert, show and draw data sets.", no_args_is_help=True)
app.command()(render)

MOST_SHOWN = 200
SOURCE_HELP = "A data set: a file or a folder of any known format."
Source = Annotated[Path, typer.Argument(help=SOURCE_HELP, show_default=False, readable=False)]
Format = Annotated[str | None, typer.Option(help="The format, where the path does not tell it.", show_default=False)]
Split = Annotated[str | None, typer.Option(help="Only train, val or test.", show_default=False)]
Validation = Annotated[int, typer.Option(help="So many training images become val (the field takes 5000).", min=0)]
DropEmpty = Annotated[bool, typer.Option(help="Leave out images without a box or without a relation.")]
Overlap = Annotated[bool, typer.Option(help="Keep only relations whose boxes overlap.")]
Duplicates = Annotated[str, typer.Option(help="Repeated relations: keep, drop, or sample one predicate a pair.")]
Images = Annotated[Path | None, typer.Option(help="The folder of the photos.", show_default=False)]
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
    images: Images = None,
    names: Names = None,
    sizes: Sizes = None,
    strict: Strict = False,
    rows: Annotated[int, typer.Option(help="How many classes and predicates to list; 0 lists all.", min=0)] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Images, boxes, relations, and histograms of classes, predicates and boxes an image."""
    from json import dumps

    from scenegpi.data import statistics

    dataset = _open(
        path,
        format=format,
        split=split,
        validation=validation,
        drop_empty=drop_empty,
        overlap=overlap,
        duplicates=duplicates,
        images=images,
        names=names,
        sizes=sizes,
        strict=strict,
    )
    figures = statistics(dataset)
    if json:
        print(dumps(figures.to_dict(), indent=1, ensure_ascii=False))
        return
    from scenegpi.commands.tables import print_statistics

    print_statistics(dataset, figures, rows)
    _say_left_out(dataset.report)


@app.command()
@quiet()
def validate(
    path: Source,
    format: Format = None,
    images: Images = None,
    names: Names = None,
    sizes: Sizes = None,
    warnings: Annotated[bool, typer.Option(help="Also list oddities that cost nothing.")] = True,
) -> None:
    """List every defect with file, image and field. Exit code 1 if there is any, 2 if the data can't be read."""
    import sys

    from scenegpi.data import validate as check

    report = check(path, format=format, images=images, names=names, sizes=sizes)
    for defect in report.defects:
        if defect.severity == "error" or warnings:
            sys.stdout.write(f"{defect.severity}: {defect}\n")
    hidden = report.errors + report.warnings - len(report.defects)
    if hidden:
        print(f"... and {hidden:,} more")
    left = f", {report.skipped:,} images can't be used" if report.skipped else ""
    print(f"{path}: {report.errors:,} errors, {report.warnings:,} warnings{left}")
    if report.errors:
        raise typer.Exit(1)


@app.command()
@quiet()
def convert(
    path: Source,
    target: Annotated[Path, typer.Argument(help="What to write: x.jsonl, x.json (COCO) or a folder (Visual Genome).")],
    to: Annotated[str | None, typer.Option(help="jsonl, coco or visual-genome.", show_default=False)] = None,
    force: Annotated[bool, typer.Option(help="Replace what is there.")] = False,
    format: Format = None,
    split: Split = None,
    validation: Validation = 0,
    drop_empty: DropEmpty = False,
    overlap: Overlap = False,
    duplicates: Duplicates = "keep",
    images: Images = None,
    names: Names = None,
    sizes: Sizes = None,
    strict: Strict = False,
) -> None:
    """From any format that is read to any format that is written."""
    from scenegpi.data import convert as write

    dataset = _open(
        path,
        format=format,
        split=split,
        validation=validation,
        drop_empty=drop_empty,
        overlap=overlap,
        duplicates=duplicates,
        images=images,
        names=names,
        sizes=sizes,
        strict=strict,
    )

    def watched(graphs: Iterable[SceneGraph]) -> Iterable[SceneGraph]:
        from rich.console import Console
        from rich.progress import track

        console = Console(stderr=True)
        return track(graphs, "converting", total=len(dataset), console=console, disable=not console.is_terminal)

    count = write(dataset, target, to, force, watched)
    print(f"{target}: {count:,} images written")
    _say_left_out(dataset.report)


@app.command()
@quiet()
def show(
    path: Annotated[Path | None, typer.Argument(help=f"{SOURCE_HELP} By default the sample.", readable=False)] = None,
    image: Annotated[str | None, typer.Argument(help="The image's id or file name.", show_default=False)] = None,
    index: Annotated[int, typer.Option(help="Or its position in the data set.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="Also draw it to this .png or .svg.", show_default=False)] = None,
    top: Annotated[int, typer.Option(help="How many relations to show.", min=1)] = 20,
    format: Format = None,
    split: Split = None,
    validation: Validation = 0,
    images: Images = None,
    names: Names = None,
    sizes: Sizes = None,
) -> None:
    """Draw one image's graph in the terminal, and with --out as a picture (on its photo, where that is found)."""
    from rich.console import Console

    from scenegpi.data import DataError, sample_path
    from scenegpi.viz.terminal import render

    where = {"format": format, "images": images, "names": names, "sizes": sizes}
    dataset = _open(path or sample_path(), split=split, validation=validation, **where)
    at = dataset.find(image) if image is not None else index
    if at >= len(dataset):
        first = dataset.report.first_error
        said = f"; left out, for one: {first.field}: {first.message}" if first else ""
        raise DataError(dataset.path, f"image {at}: there are {len(dataset)}, counted from 0{said}")
    graph = _fitting(dataset[at], top)
    console = Console()
    console.print(render(graph, columns=min(max(console.width - 1, 16), 110), top=top))
    if out is not None:
        from scenegpi.viz.picture import draw

        photo = dataset.image_path(at)
        draw(graph, out, photo, top)
        print(f"{out}: drawn{f' on {photo}' if photo else ' without a photo (none was found)'}")


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

    return open_dataset(path, **options)


def _say_left_out(report: Report) -> None:
    if report.skipped:
        import sys

        print(f"{report.skipped:,} images left out; the first: {report.first_error}", file=sys.stderr)
        print(f"`scenegpi data validate {report.file}` lists them all", file=sys.stderr)
