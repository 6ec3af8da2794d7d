"""`scenegpi predict`: photos and boxes in, scene graphs out; parses, calls and prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from scenegpi.commands.quiet import quiet
from scenegpi.commands.terminal import make_console

if TYPE_CHECKING:
    from rich.console import Console

    from scenegpi.commands.predict_inputs import Inputs
    from scenegpi.commands.predict_ray import Form
    from scenegpi.prediction.model import Backend

INPUT, MODEL, OUTPUT, RUN = "Input", "Model", "Output", "Run"
EPILOG = "Exit codes: 0 all images predicted, 1 some were skipped (each is named), 2 input that can't be used."


@quiet()
def predict(
    photos: Annotated[
        list[str] | None,
        typer.Argument(
            help="Photos: files, folders, patterns; or a table of boxes.", metavar="PHOTO", show_default=False
        ),
    ] = None,
    boxes: Annotated[
        Path | None,
        typer.Option(
            help="Boxes: COCO results, YOLO txt, JSON lines, Parquet, any data set.",
            rich_help_panel=INPUT,
            show_default=False,
        ),
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(help="Class names of the boxes: a file, or coco.", rich_help_panel=INPUT, show_default=False),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(help="Format of the boxes, if it is not clear.", rich_help_panel=INPUT, show_default=False),
    ] = None,
    photo_folder: Annotated[
        Path | None,
        typer.Option("--photos", help="Folder of the boxes' photos.", rich_help_panel=INPUT, show_default=False),
    ] = None,
    sizes: Annotated[
        Path | None,
        typer.Option(help="JSON of image sizes, for boxes in fractions.", rich_help_panel=INPUT, show_default=False),
    ] = None,
    detector: Annotated[
        str | None, typer.Option(help="Find boxes with this detector.", rich_help_panel=INPUT, show_default=False)
    ] = None,
    every: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Take every n-th frame of a video or a folder.",
            rich_help_panel=INPUT,
            show_default=False,
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Only this many images; 0 for all.", rich_help_panel=INPUT)] = 0,
    model: Annotated[
        str | None,
        typer.Option(help="A shipped model, a folder, or an ONNX file.", rich_help_panel=MODEL, show_default=False),
    ] = None,
    backend: Annotated[
        str | None,
        typer.Option(
            help="torch, or onnx: no torch, faster start; see docs/onnx.md.", rich_help_panel=MODEL, show_default=False
        ),
    ] = None,
    labels: Annotated[
        str,
        typer.Option(
            help="Given labels: auto, believed, or found (ignored and predicted); see docs/predict.md.",
            rich_help_panel=MODEL,
        ),
    ] = "auto",
    min_score: Annotated[
        float, typer.Option(min=0, max=1, help="Leave out boxes that score less.", rich_help_panel=MODEL)
    ] = 0.0,
    nms: Annotated[
        float,
        typer.Option(min=0, max=1, help="Drop boxes that overlap a better one by more (IoU).", rich_help_panel=MODEL),
    ] = 1.0,
    max_boxes: Annotated[
        int, typer.Option(min=1, max=4096, help="Keep at most this many boxes per image.", rich_help_panel=MODEL)
    ] = 64,
    similarity: Annotated[
        float,
        typer.Option(
            min=-1,
            max=2,
            help="Least cosine to match unknown labels by word vectors; 2: never.",
            rich_help_panel=MODEL,
        ),
    ] = 0.8,
    device: Annotated[str, typer.Option(help="Where the model runs: cpu, cuda, ...", rich_help_panel=MODEL)] = "cpu",
    out: Annotated[Path, typer.Option(help="Folder for everything that is written.", rich_help_panel=OUTPUT)] = Path(
        "out/predict"
    ),
    formats: Annotated[
        str,
        typer.Option(
            help="Per image: png, svg, graphml, dot, networkx. For all: coco, rdf. Of a video: png, mp4. Or none.",
            rich_help_panel=OUTPUT,
        ),
    ] = "png",
    top: Annotated[
        int, typer.Option(min=0, max=10_000, help="Keep at most this many relations per image.", rich_help_panel=OUTPUT)
    ] = 20,
    min_relation: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Leave out relations that score less; by default 0.1, between found boxes 0.05.",
            rich_help_panel=OUTPUT,
            show_default=False,
        ),
    ] = None,
    informative: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Prefer rare predicates to common ones; 0: not at all.", rich_help_panel=OUTPUT
        ),
    ] = 0.3,
    tidy: Annotated[
        bool,
        typer.Option(
            help="Leave out mirrored and implausible relations; 'person' where man or woman is unsure.",
            rich_help_panel=OUTPUT,
        ),
    ] = True,
    distributions: Annotated[
        bool, typer.Option("--distributions", help="Also write whole distributions (large).", rich_help_panel=OUTPUT)
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Worker processes.", rich_help_panel=RUN)] = 1,
    batch: Annotated[int, typer.Option(min=1, max=4096, help="Images per write.", rich_help_panel=RUN)] = 64,
    engine: Annotated[
        str,
        typer.Option(help="local, or ray: shards on all cores or a cluster; see docs/scale.md.", rich_help_panel=RUN),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(help="Of a ray cluster; without it ray runs here.", rich_help_panel=RUN, show_default=False),
    ] = None,
    shard: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="With ray: images per file.", rich_help_panel=RUN)
    ] = 1024,
    lines: Annotated[
        str, typer.Option("--form", help="With ray: files are jsonl or parquet.", rich_help_panel=RUN)
    ] = "jsonl",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the run in this folder, or fail.", rich_help_panel=RUN)
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in the folder.", rich_help_panel=RUN)] = False,
) -> None:
    """Scene graphs of your own pictures and boxes.

    [bold]scenegpi predict photo.jpg[/bold] finds the boxes itself;
    [bold]scenegpi predict photo.jpg --boxes boxes.json[/bold] takes yours;
    [bold]scenegpi predict --boxes boxes.json[/bold] needs no photo.
    """

    from scenegpi.commands.predict_inputs import Inputs, boxes_given_as_photo, find_photos, open_boxes
    from scenegpi.commands.predict_output import FORMATS, PredictionLog, choose_folder, write_whole
    from scenegpi.commands.predict_report import print_summary
    from scenegpi.commands.predict_run import Setup, run
    from scenegpi.data.video import VIDEO_FORMATS, video_of
    from scenegpi.errors import DataError
    from scenegpi.options import override
    from scenegpi.prediction.finding import check_finder
    from scenegpi.prediction.options import PredictOptions
    from scenegpi.progress import progress

    console = make_console()
    if not photos and boxes is None:
        raise DataError("predict", "nothing to predict: give photos, or boxes with --boxes FILE, or both")
    if boxes is not None and detector is not None:
        raise DataError("predict", "give either --boxes or --detector")
    photos, boxes = boxes_given_as_photo(photos, boxes)
    video = video_of(photos, every)
    wanted = _formats(formats, FORMATS if video is None else VIDEO_FORMATS)
    values = {"labels": labels, "nms": nms, "max_boxes": max_boxes, "min_score": min_score, "top": top}
    values |= {"min_relation": min_relation, "similarity": similarity, "distributions": distributions}
    values |= {"informative": informative, "tidy": tidy}
    options = override(PredictOptions(), values, "")
    if video is not None:
        from scenegpi.commands.predict_video import predict_video
        from scenegpi.prediction.defaults import default_model

        check_finder(detector)
        setup = Setup(model or default_model(True)[0], detector, options, out, wanted, device, 0, _backend(backend))
        predict_video(video, every or 1, limit, setup)
        return
    files = find_photos(photos, out)
    data = None if boxes is None else open_boxes(boxes, files, format, names, photo_folder, sizes)
    inputs = Inputs(files[: limit or None], data if not limit or files or data is None else data[:limit])
    if data is None:
        check_finder(detector)
    model = model or _default_model(inputs, console)
    if backend == "onnx":
        _export_once(model, console)
    settings = _settings(model, detector, options)
    if engine == "ray":
        from scenegpi.commands.predict_ray import run_ray, shard_settings

        _check_shards(wanted)
        settings |= shard_settings(inputs, form := _form(lines), shard)
    elif engine != "local":
        raise DataError("--engine", f"{engine!r:.40} is none of local, ray")
    folder = choose_folder(out, settings, resume, force)
    with PredictionLog(folder, settings, force) as log, progress("images", len(inputs)) as step:
        setup = Setup(model, detector, options, folder, wanted, device, _threads(jobs), _backend(backend))
        if engine == "ray":
            summary = run_ray(inputs, setup, form, shard, jobs, address, step)
        else:
            summary = run(inputs, setup, log, batch, jobs, step)
        whole = write_whole(folder, wanted)
    print_summary(console, summary, setup, whole, data)
    if summary.skipped or (data is not None and data.report.skipped):
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


def _default_model(inputs: Inputs, console: Console) -> str:
    from scenegpi.prediction.defaults import default_model

    boxes = inputs.boxes
    photos = bool(inputs.photos) or (boxes is not None and any(boxes.photo_path(graph) for graph in boxes[:1]))
    scored = boxes is not None and any(graph.scores is not None for graph in boxes[:1])
    name, why = default_model(photos, None if boxes is None else boxes.vocabulary, scored)
    console.print(f"using {name}: {why} (override with --model)", style="dim", highlight=False, soft_wrap=True)
    return name


def _export_once(model: str, console: Console) -> None:
    """Before any work: an export takes some seconds, and workers must not all do it."""
    from scenegpi.onnx.exported import exported_file, forms, is_exported

    if not is_exported(model):
        with console.status(f"exporting {model} for onnxruntime; this is done once"):
            for form in forms(model):
                exported_file(model, form)


def _check_shards(formats: tuple[str, ...]) -> None:
    from scenegpi.commands.predict_output import WHOLE
    from scenegpi.errors import DataError

    whole = next((kind for kind in formats if kind in WHOLE), None)
    if whole is not None:
        raise DataError("--formats", f"{whole} holds all images in one file, which --engine ray does not write")


def _form(text: str) -> Form:
    from scenegpi.errors import DataError

    if text not in ("jsonl", "parquet"):
        raise DataError("--form", f"{text!r:.40} is none of jsonl, parquet")
    return cast("Form", text)


def _backend(text: str | None) -> Backend | None:
    from scenegpi.errors import OptionError

    if text not in (None, "torch", "onnx"):
        raise OptionError(f"--backend: {text!r:.40} is none of torch, onnx")
    return cast("Backend | None", text)


def _threads(jobs: int) -> int:
    """Torch's threads of each worker; 0 leaves them as they are."""
    import os

    return 0 if jobs == 1 else max(1, (os.cpu_count() or 1) // jobs)


def _settings(model: str, finder: str | None, options: Any) -> dict[str, Any]:
    """What determines the predictions, and must be the same when a run is continued."""
    from scenegpi import __version__
    from scenegpi.options import plain

    return {"scenegpi": __version__, "model": model, "finder": finder, "options": plain(options)}
