"""`scenegpi predict`: photos and boxes in, scene graphs out; parses, calls and prints."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from scenegpi.commands.options import File, Text
from scenegpi.commands.terminal import make_console, quiet

if TYPE_CHECKING:
    from rich.console import Console

    from scenegpi.bulk.job import Engine
    from scenegpi.bulk.run_inputs import Found, Inputs
    from scenegpi.bulk.workers import Setup
    from scenegpi.data import Dataset

EPILOG = "Exit codes: 0 all images predicted, 1 some were skipped (each is named), 2 input that can't be used."
Backend = Literal["torch", "onnx"]
Labels = Literal["auto", "believed", "found"]
Kind = Literal["local", "ray"]
Form = Literal["jsonl", "parquet"]
DETECTOR = "Find boxes with this detector: finder, yolov4-tiny, FILE.onnx, hf:FOLDER, finder+NAME."
LABELS = "What to do with given labels: auto, believed (kept) or found (predicted again); see docs/predict.md."
FORMATS = "Per image: png, svg, graphml, dot, networkx. For all: coco, rdf. Of a video: png, mp4. Or none."
SIMILARITY = "Least cosine to match unknown labels by word vectors; 2: never."
FLOOR = "Leave out relations that score less; by default 0.1, between found boxes 0.05."
TIDY = "Leave out mirrored and implausible relations; label uncertain men and women 'person'."
ENGINE = "local, or ray: shards on all cores or a cluster; see docs/scale.md."


def _option(panel: str, help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


_in, _by, _out, _run = (partial(_option, panel) for panel in ("Input", "Model", "Output", "Run"))
_photos = typer.Argument(help="Photos: files, folders, patterns; or a table of boxes.", metavar="PHOTO")


@quiet()
def predict(
    photos: Annotated[list[str] | None, _photos] = None,
    boxes: Annotated[File, _in("Boxes: COCO results, YOLO txt, JSON lines, Parquet, any data set.")] = None,
    names: Annotated[Text, _in("Class names of the boxes, or of FILE.onnx: a file, or coco.")] = None,
    format: Annotated[Text, _in("Format of the boxes, if it is not clear.")] = None,
    photo_folder: Annotated[File, _in("Folder of the boxes' photos.", "--photos")] = None,
    sizes: Annotated[File, _in("JSON of image sizes, for boxes in fractions.")] = None,
    detector: Annotated[Text, _in(DETECTOR)] = None,
    find: Annotated[Text, _in("What an open-vocabulary detector looks for: 'dog, leash, ball'.")] = None,
    every: Annotated[int | None, _in("Take every n-th frame of a video or folder.", min=1)] = None,
    limit: Annotated[int, _in("Only this many images; 0 for all.", min=0)] = 0,
    model: Annotated[Text, _by("A shipped model, a folder, or an ONNX file.")] = None,
    backend: Annotated[Backend | None, _by("onnx runs without torch and starts faster; see docs/onnx.md.")] = None,
    labels: Annotated[Labels, _by(LABELS)] = "auto",
    min_score: Annotated[float, _by("Leave out boxes that score less.", min=0, max=1)] = 0.0,
    nms: Annotated[float, _by("Drop boxes whose IoU with a better-scoring box is higher.", min=0, max=1)] = 1.0,
    max_boxes: Annotated[int, _by("Keep at most this many boxes per image.", min=1, max=4096)] = 64,
    similarity: Annotated[float, _by(SIMILARITY, min=-1, max=2)] = 0.8,
    device: Annotated[str, _by("Where the model runs: cpu, cuda, ...")] = "cpu",
    out: Annotated[Path, _out("Folder for everything that is written.")] = Path("out/predict"),
    formats: Annotated[str, _out(FORMATS)] = "png",
    top: Annotated[int, _out("Keep at most this many relations per image.", min=0, max=10_000)] = 20,
    min_relation: Annotated[float | None, _out(FLOOR, min=0, max=1)] = None,
    informative: Annotated[float, _out("Prefer rare predicates to common ones; 0: not at all.", min=0, max=1)] = 0.3,
    tidy: Annotated[bool, _out(TIDY)] = True,
    distributions: Annotated[bool, _out("Also write whole distributions (large).", "--distributions")] = False,
    jobs: Annotated[int, _run("Worker processes.", min=1, max=256)] = 1,
    batch: Annotated[int, _run("Number of images per write.", min=1, max=4096)] = 64,
    engine: Annotated[Kind, _run(ENGINE)] = "local",
    address: Annotated[Text, _run("Address of a Ray cluster; default: start one locally.")] = None,
    shard: Annotated[int, _run("With ray: images per file.", min=1, max=1_000_000)] = 1024,
    form: Annotated[Form, _run("With ray: files are jsonl or parquet.")] = "jsonl",
    resume: Annotated[bool, _run("Continue the run in this folder, or fail.", "--resume")] = False,
    force: Annotated[bool, _run("Start again, and overwrite files that are in the way.", "--force")] = False,
) -> None:
    """Scene graphs of your own pictures and boxes.

    [bold]scenegpi predict photo.jpg[/bold] finds the boxes itself;
    [bold]scenegpi predict photo.jpg --boxes boxes.json[/bold] takes yours;
    [bold]scenegpi predict --boxes boxes.json[/bold] needs no photo.
    """
    from scenegpi.bulk.job import Engine
    from scenegpi.bulk.run_folder import usable_folder
    from scenegpi.bulk.run_inputs import boxes_given_as_photo
    from scenegpi.bulk.workers import Setup
    from scenegpi.prediction.finding import FinderSpec
    from scenegpi.prediction.options import PredictOptions

    which = (labels, nms, max_boxes, min_score, top, min_relation)
    options = PredictOptions(*which, similarity, informative, tidy, distributions)
    photos, boxes = boxes_given_as_photo(photos, boxes, detector)
    finder = FinderSpec.of(detector, names if boxes is None else None, find)
    setup = Setup(model or "", finder, options, usable_folder(out), (), device, 0, backend)
    how = Engine(engine, jobs, batch, address, shard, form, resume, force)
    _start(photos, every, limit, setup, how, formats, (boxes, format, names, photo_folder, sizes))


def _start(
    photos: list[str], every: int | None, limit: int, setup: Setup, how: Engine, formats: str, given: tuple[Any, ...]
) -> None:
    """A video, or images; `given` are the boxes, their format, names, photos and sizes."""
    from scenegpi.bulk.run_inputs import find_photos, open_boxes
    from scenegpi.data.video import video_of

    if (video := video_of(photos, every)) is not None:
        return _predict_video(video, every or 1, limit, setup, how, formats)
    boxes, format, names, folder, sizes = given
    found = find_photos(photos)
    data = None if boxes is None else open_boxes(boxes, found.photos, format, names, folder, sizes)
    return _predict_images(found, data, limit, setup, how, formats, (boxes, sizes, names))


def _predict_video(video: Path, every: int, limit: int, setup: Setup, how: Engine, formats: str) -> None:
    from scenegpi.bulk.job import open_log
    from scenegpi.bulk.video_run import run_video, video_files
    from scenegpi.commands.predict_report import print_video
    from scenegpi.data.video import VIDEO_FORMATS
    from scenegpi.prediction.defaults import default_model
    from scenegpi.prediction.finding import check_finder
    from scenegpi.progress import progress
    from scenegpi.viz.clip import film

    check_finder(setup.finder)
    setup = replace(setup, model=setup.model or default_model(True)[0], formats=_formats(formats, VIDEO_FORMATS))
    with open_log(setup, how, video_files(video)) as log, progress("frames") as step:
        summary = run_video(video, every, limit, setup, log, film, step)
        log.write_skipped(summary.skipped)
    print_video(make_console(), summary, log.path)
    if summary.skipped:
        raise typer.Exit(1)


def _predict_images(
    found: Found,
    data: Dataset | None,
    limit: int,
    setup: Setup,
    how: Engine,
    formats: str,
    given: tuple[Path | str | None, ...],
) -> None:
    from scenegpi.bulk.image_files import FORMATS
    from scenegpi.bulk.job import open_log, run_images
    from scenegpi.bulk.run_inputs import Inputs
    from scenegpi.commands.predict_report import print_problems, print_summary
    from scenegpi.prediction.finding import check_finder
    from scenegpi.progress import progress

    console = make_console()
    wanted = _formats(formats, FORMATS)
    photos = found.photos
    inputs = Inputs(photos[: limit or None], data if not limit or photos or data is None else data[:limit])
    if data is None or not data.boxed:
        check_finder(setup.finder)
    if data is None and setup.finder is None and setup.model:
        _say_who_finds(setup.model, console)
    setup = replace(setup, model=setup.model or _default_model(inputs, setup, console), formats=wanted)
    if setup.backend == "onnx":
        _export_once(setup.model, console)
    files = [*inputs.files, *(Path(each) for each in given if each)]
    with open_log(setup, how, files, inputs) as log, progress("images", len(inputs)) as step:
        summary, whole = run_images(inputs, setup, how, log, step)
        defects = [] if data is None else [str(each) for each in data.report.defects if each.severity == "error"]
        problems = [*found.problems, *summary.skipped, *defects]
        log.write_skipped(problems)
    print_summary(console, summary, replace(setup, folder=log.folder), whole, found.left_out)
    print_problems(problems, log.folder)
    if problems:
        raise typer.Exit(1)


def _formats(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    from scenegpi.errors import DataError

    kinds = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    if kinds == ("none",):
        return ()
    unknown = next((kind for kind in kinds if kind not in known), None)
    if unknown is not None or not kinds:
        raise DataError("--formats", f"{unknown or text!r}: expected some of {', '.join(known)}, or none")
    return kinds


def _default_model(inputs: Inputs, setup: Setup, console: Console) -> str:
    from scenegpi.prediction.defaults import default_model
    from scenegpi.prediction.finding import default_finder

    boxes = inputs.boxes
    photos = bool(inputs.photos) or (
        boxes is not None and (boxes.photo_bytes(0) is not None or any(boxes.photo_path(graph) for graph in boxes[:1]))
    )
    scored = boxes is not None and any(graph.scores is not None for graph in boxes[:1])
    name, why = default_model(photos, None if boxes is None else boxes.vocabulary, scored)
    if boxes is None:
        why = f"{why}; boxes by {setup.finder.name if setup.finder else default_finder(setup.backend)}"
    console.print(f"using {name}: {why} (override with --model)", style="dim", highlight=False, soft_wrap=True)
    return name


def _say_who_finds(model: str, console: Console) -> None:
    from scenegpi.models.shipped import vision_settings
    from scenegpi.prediction.defaults import PHOTO

    if not Path(model).is_file() and not vision_settings(model).get("finder"):
        line = f"{model} finds no boxes itself: {PHOTO} does; those whose labels match are kept (or give --boxes)"
        console.print(line, style="dim", highlight=False, soft_wrap=True)


def _export_once(model: str, console: Console) -> None:
    """Before any work: an export takes some seconds, and workers must not all do it."""
    from scenegpi.onnx.exported import exported_file, missing_forms

    for form in missing_forms(model):
        console.print(f"exporting {model} ({form}) for onnxruntime; this is done once", style="dim")
        exported_file(model, form)
