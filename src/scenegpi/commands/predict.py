"""`scenegpi predict`: photos and boxes in, scene graphs out; thin, it parses, calls and prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scenegpi.commands.quiet import quiet

if TYPE_CHECKING:
    from rich.console import Console

    from scenegpi.commands.predict_run import Setup, Summary
    from scenegpi.data import Dataset

INPUT, MODEL, OUTPUT, RUN = "What goes in", "What the model does", "What comes out", "The run"
EPILOG = "Exit codes: 0 all images predicted, 1 some were skipped (each is said), 2 input that can't be used."


@quiet()
def predict(
    photos: Annotated[
        list[str] | None, typer.Argument(help="Photos: files, folders, patterns.", metavar="PHOTO", show_default=False)
    ] = None,
    boxes: Annotated[
        Path | None,
        typer.Option(
            help="Boxes: COCO results, YOLO txt, JSON lines, any data set.", rich_help_panel=INPUT, show_default=False
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(help="Their class names: a file, or coco.", rich_help_panel=INPUT, show_default=False),
    ] = None,
    format: Annotated[
        str | None, typer.Option(help="Their format, if not clear.", rich_help_panel=INPUT, show_default=False)
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="The folder of their photos.", rich_help_panel=INPUT, show_default=False)
    ] = None,
    sizes: Annotated[
        Path | None, typer.Option(help="JSON of image sizes.", rich_help_panel=INPUT, show_default=False)
    ] = None,
    detector: Annotated[
        str | None, typer.Option(help="Find boxes with this detector.", rich_help_panel=INPUT, show_default=False)
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="A shipped model or a folder.", rich_help_panel=MODEL, show_default=False)
    ] = None,
    refine_labels: Annotated[
        bool, typer.Option("--refine-labels", help="Let the model change labels.", rich_help_panel=MODEL)
    ] = False,
    min_score: Annotated[
        float, typer.Option(min=0, max=1, help="Leave out boxes that score less.", rich_help_panel=MODEL)
    ] = 0.0,
    nms: Annotated[
        float, typer.Option(min=0, max=1, help="Drop boxes that overlap a better one by more.", rich_help_panel=MODEL)
    ] = 1.0,
    max_boxes: Annotated[
        int, typer.Option(min=1, max=1024, help="Boxes of an image, the best so many.", rich_help_panel=MODEL)
    ] = 64,
    similarity: Annotated[
        float,
        typer.Option(
            min=-1,
            max=2,
            help="Guess unknown labels by word vectors from this cosine on; 2: never.",
            rich_help_panel=MODEL,
        ),
    ] = 0.8,
    out: Annotated[Path, typer.Option(help="Folder for all that is written.", rich_help_panel=OUTPUT)] = Path(
        "out/predict"
    ),
    formats: Annotated[
        str,
        typer.Option(
            help="Each image: png, svg, graphml, dot, networkx. All: coco, rdf. Or none.", rich_help_panel=OUTPUT
        ),
    ] = "png",
    top: Annotated[
        int, typer.Option(min=0, max=10_000, help="Relations of an image, the best so many.", rich_help_panel=OUTPUT)
    ] = 20,
    min_relation: Annotated[
        float, typer.Option(min=0, max=1, help="And at least this probable.", rich_help_panel=OUTPUT)
    ] = 0.1,
    distributions: Annotated[
        bool, typer.Option("--distributions", help="Also whole distributions (large).", rich_help_panel=OUTPUT)
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Processes side by side.", rich_help_panel=RUN)] = 1,
    batch: Annotated[int, typer.Option(min=1, max=4096, help="Images between two writes.", rich_help_panel=RUN)] = 16,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what is in the folder.", rich_help_panel=RUN)
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in the folder.", rich_help_panel=RUN)] = False,
) -> None:
    """Scene graphs of your own pictures and boxes.

    [bold]scenegpi predict photo.jpg[/bold] finds the boxes itself (with the extra \\[detect]);
    [bold]scenegpi predict photo.jpg --boxes boxes.json[/bold] takes yours;
    [bold]scenegpi predict --boxes boxes.json[/bold] needs no photo.
    """
    from rich.console import Console

    from scenegpi.commands.predict_inputs import Inputs, find_photos
    from scenegpi.commands.predict_output import PredictionLog, write_whole
    from scenegpi.commands.predict_run import Setup, run
    from scenegpi.data import DataError
    from scenegpi.models.bulk import Choices

    console = Console()
    if not photos and boxes is None:
        raise DataError("predict", "nothing to predict: give photos, or boxes with --boxes FILE, or both")
    if boxes is not None and detector is not None:
        raise DataError("predict", "give either --boxes or --detector")
    wanted = _formats(formats)
    files = find_photos(photos or [], out)
    data = None if boxes is None else _boxes(boxes, files, format, names, images, sizes)
    detector = _detector(detector) if data is None else None
    inputs = Inputs(files, data)
    model = model or _default_model(inputs, console)
    choices = Choices(
        refine_labels=refine_labels,
        nms=nms,
        max_boxes=max_boxes,
        min_score=min_score,
        top=top,
        min_relation=min_relation,
        similarity=similarity,
        distributions=distributions,
    )
    setup = Setup(model, detector, choices, out, wanted, _threads(jobs))
    log = PredictionLog(out, _settings(setup), resume, force)
    with _bar(len(inputs)) as (progress, bar):
        summary = run(inputs, setup, log, batch, jobs, lambda n: progress.advance(bar, n))
    whole = write_whole(out, wanted)
    _report(console, summary, setup, whole, data)
    if summary.skipped or (data is not None and data.report.skipped):
        raise typer.Exit(1)


def _formats(text: str) -> tuple[str, ...]:
    from scenegpi.commands.predict_output import FORMATS
    from scenegpi.data import DataError

    kinds = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    if kinds == ("none",):
        return ()
    unknown = next((kind for kind in kinds if kind not in FORMATS), None)
    if unknown is not None or not kinds:
        raise DataError("--formats", f"{unknown or text!r}: expected some of {', '.join(FORMATS)}, or none")
    return kinds


def _boxes(path: Path, photos: list[Path], *how: Any) -> Dataset:
    from scenegpi.commands.predict_inputs import open_boxes
    from scenegpi.data import DataError

    dataset = open_boxes(path, photos, *how)
    if not len(dataset):
        first = f" ({dataset.report.first_error})" if dataset.report.first_error else ""
        raise DataError(path, f"holds no image that can be used{first}")
    objects = dataset.vocabulary.objects
    if objects and all(name.startswith("class ") for name in objects):
        hint = "add --names FILE, or --names coco for the 80 names of COCO"
        raise DataError(path, f"its classes have numbers but no names, and a model goes by names: {hint}")
    return dataset


def _detector(name: str | None) -> str:
    """The detector that was asked for, or the one of the extra; checked before any work is done."""
    from scenegpi.data import DataError
    from scenegpi.vision.detect import DEFAULT, load_detector

    try:
        load_detector(name or DEFAULT)
    except DataError as error:
        if name is not None:
            raise
        hint = "give boxes with --boxes FILE, or install the detector: pip install 'scenegpi[detect]'"
        raise DataError("predict", f"photos need boxes: {hint} ({error})") from None
    return name or DEFAULT


def _default_model(inputs: Any, console: Console) -> str:
    from scenegpi.models.choose import default_model

    name, why = default_model(bool(inputs.photos), None if inputs.boxes is None else inputs.boxes.vocabulary)
    console.print(f"model {name} ({why}; --model takes another)", style="dim", highlight=False, soft_wrap=True)
    return name


def _threads(jobs: int) -> int:
    """Torch's threads of each worker; 0 leaves it as it is."""
    import os

    return 0 if jobs == 1 else max(1, (os.cpu_count() or 1) // jobs)


def _settings(setup: Setup) -> dict[str, Any]:
    """What decides the answers, and is the same when a run goes on."""
    from dataclasses import asdict

    from scenegpi import __version__

    return {
        "scenegpi": __version__,
        "model": str(setup.model),
        "detector": setup.detector,
        "choices": asdict(setup.choices),
    }


def _bar(total: int) -> Any:
    from contextlib import contextmanager

    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    @contextmanager
    def bar() -> Any:
        console = Console(stderr=True)
        columns = (TextColumn("images"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
            yield progress, progress.add_task("", total=total)

    return bar()


def _report(console: Console, summary: Summary, setup: Setup, whole: list[Path], data: Dataset | None) -> None:
    from scenegpi.commands.predict_report import print_summary

    print_summary(console, summary, setup, whole, data)
