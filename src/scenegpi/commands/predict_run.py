"""What `scenegpi predict` does once its options are parsed: find the images, choose the model, run, print."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import typer
from rich.console import Console

from scenegpi.bulk.image_files import FORMATS
from scenegpi.bulk.job import open_log, run_images
from scenegpi.bulk.run_folder import usable_folder
from scenegpi.bulk.run_inputs import Found, Inputs, find_photos, open_boxes
from scenegpi.bulk.video_run import run_video, video_files
from scenegpi.bulk.workers import Engine, Setup
from scenegpi.commands.predict_report import print_problems, print_summary, print_video
from scenegpi.commands.terminal import make_console
from scenegpi.data import Dataset
from scenegpi.data.video import VIDEO_FORMATS, video_of
from scenegpi.errors import DataError
from scenegpi.models.shipped import PHOTO, vision_settings
from scenegpi.prediction.defaults import default_model
from scenegpi.prediction.finding import FinderSpec, check_finder, default_finder
from scenegpi.progress import progress

TABLES = (".parquet", ".jsonl")
"""Files of boxes that may be given in place of photos."""


class Boxes(NamedTuple):
    """Where boxes come from: a file, with its format and class names, or a detector."""

    file: Path | None
    format: str | None
    names: str | None
    photos: Path | None
    sizes: Path | None
    detector: str | None
    find: str | None


def start(
    photos: list[str], boxes: Boxes, every: int | None, limit: int, setup: Setup, engine: Engine, formats: str
) -> None:
    """Predicts a video, or images; `setup` still lacks the finder and the formats, and maybe the model."""
    file = boxes.file
    if not photos and file is None:
        raise DataError("predict", "nothing to predict: give photos, or boxes with --boxes FILE, or both")
    if file is not None and boxes.detector is not None:
        raise DataError("predict", "give either --boxes or --detector")
    if file is None and len(photos) == 1 and Path(photos[0]).suffix.lower() in TABLES:
        photos, file = [], Path(photos[0])
    if file is None:
        about = {"format": boxes.format, "photos": boxes.photos, "sizes": boxes.sizes}
        unused = next((name for name, value in about.items() if value is not None), None)
        if unused is not None:
            raise DataError(f"--{unused}", "is about given boxes: needs --boxes FILE")
    finder = FinderSpec.of(boxes.detector, boxes.names if file is None else None, boxes.find)
    setup = replace(setup, finder=finder, folder=usable_folder(setup.folder))
    if (video := video_of(photos, every)) is not None:
        if file is not None:
            raise DataError("--boxes", "not for a video, in whose frames boxes are found; give its frames as photos")
        if engine.kind == "ray" or engine.jobs > 1:
            option = "--engine ray" if engine.kind == "ray" else "--jobs"
            raise DataError(option, "not for a video, whose frames are followed in one process")
        _predict_video(video, every or 1, limit, replace(setup, formats=_formats(formats, VIDEO_FORMATS)), engine)
        return
    found = find_photos(photos)
    data = None
    if file is not None:
        data = open_boxes(file, found.photos, boxes.format, boxes.names, boxes.photos, boxes.sizes)
    read = [Path(each) for each in (file, boxes.sizes, boxes.names) if each]
    _predict_images(found, data, limit, replace(setup, formats=_formats(formats, FORMATS)), engine, read)


def _predict_video(video: Path, every: int, limit: int, setup: Setup, engine: Engine) -> None:
    from scenegpi.viz.clip import film

    check_finder(setup.finder)
    setup = replace(setup, model=setup.model or default_model(True)[0])
    with open_log(setup, engine, video_files(video)) as log, progress("frames") as step:
        summary = run_video(video, every, limit, setup, log, film, step)
        log.write_skipped(summary.skipped)
    print_video(make_console(), summary, log.path)
    if summary.skipped:
        raise typer.Exit(1)


def _predict_images(
    found: Found, data: Dataset | None, limit: int, setup: Setup, engine: Engine, read: list[Path]
) -> None:
    """`data` holds the boxes; `read` are the files that they were read from."""
    console, photos = make_console(), found.photos
    inputs = Inputs(photos[: limit or None], data if not limit or photos or data is None else data[:limit])
    if data is None or not data.boxed:
        check_finder(setup.finder)
    if data is None and setup.finder is None and setup.model:
        _say_who_finds(setup.model, console)
    setup = replace(setup, model=setup.model or _default_model(inputs, setup, console))
    if setup.backend == "onnx":
        _export_once(setup.model, console)
    with open_log(setup, engine, [*inputs.files, *read], inputs) as log, progress("images", len(inputs)) as step:
        summary, whole = run_images(inputs, setup, engine, log, step)
        defects = [] if data is None else [str(each) for each in data.report.defects if each.severity == "error"]
        problems = [*found.problems, *summary.skipped, *defects]
        log.write_skipped(problems)
    print_summary(console, summary, replace(setup, folder=log.folder), whole, found.left_out)
    print_problems(problems, log.folder)
    if problems:
        raise typer.Exit(1)


def _formats(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip()))
    if kinds == ("none",):
        return ()
    unknown = next((kind for kind in kinds if kind not in known), None)
    if unknown is not None or not kinds:
        raise DataError("--formats", f"{unknown or text!r}: expected any of {', '.join(known)}, or none")
    return kinds


def _default_model(inputs: Inputs, setup: Setup, console: Console) -> str:
    boxes = inputs.boxes
    photos = bool(inputs.photos) or (
        boxes is not None and (boxes.photo_bytes(0) is not None or any(boxes.photo_path(graph) for graph in boxes[:1]))
    )
    scored = boxes is not None and any(graph.scores is not None for graph in boxes[:1])
    name, why = default_model(photos, None if boxes is None else boxes.vocabulary, scored)
    if boxes is None:
        why = f"{why}; boxes by {setup.finder.name if setup.finder else default_finder(setup.backend)}"
    _say(console, f"using {name}: {why} (override with --model)")
    return name


def _say_who_finds(model: str, console: Console) -> None:
    if not Path(model).is_file() and not vision_settings(model).get("finder"):
        _say(
            console, f"{model} finds no boxes itself: {PHOTO} does; boxes whose labels match are kept (or give --boxes)"
        )


def _export_once(model: str, console: Console) -> None:
    """Before any work: an export takes a few seconds and must not be repeated by every worker."""
    from scenegpi.onnx.exported import exported_file, missing_forms

    for form in missing_forms(model):
        _say(console, f"exporting {model} ({form}) for onnxruntime; this is done once")
        exported_file(model, form)


def _say(console: Console, line: str) -> None:
    console.print(line, style="dim", soft_wrap=True)
