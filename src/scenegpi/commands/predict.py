"""`scenegpi predict`: photos and boxes in, scene graphs out. The options; `predict_run` does what they ask for."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from scenegpi.commands.options import File, Model, Text
from scenegpi.commands.terminal import quiet

EPILOG = "Exit codes: 0 all images predicted, 1 some were skipped (each is named), 2 unusable input."
Backend = Literal["torch", "onnx"]
Labels = Literal["auto", "believed", "found"]
Kind = Literal["local", "ray"]
Form = Literal["jsonl", "parquet"]
Style = Literal["sentences", "triples", "json"]
DETECTOR = "Find boxes with this detector: finder, yolov4-tiny, FILE.onnx, hf:FOLDER, or finder+NAME for both."
LABELS = "What to do with given labels: auto, believed (kept) or found (predicted again); see docs/predict.md."
FORMATS = "Per image: png, svg, graphml, dot, networkx. For all: coco, rdf. For a video: png, mp4. Or none."
NMS = "Drop boxes that overlap a better one of the same label by more than this IoU."
SIMILARITY = "Minimum cosine at which word vectors match an unknown label; 2: never."
FLOOR = "Leave out relations that score less; default 0.1, or 0.05 between found boxes (place, ownership: 0.035)."
INFORMATIVE = "Prefer rare predicates to common ones, from 0 (not at all) to 1."
TIDY = "Leave out mirrored and implausible relations; label uncertain men and women 'person'."
ENGINE = "local, or ray: shards on all cores or a cluster; see docs/scale.md."


def _option(panel: str, help: str, *names: str, **more: Any) -> Any:
    return Option(*names, help=help, rich_help_panel=panel, **more)


_in, _by, _out, _run = (partial(_option, panel) for panel in ("Input", "Model", "Output", "Run"))
_photos = Argument(help="Photos: files, folders, patterns; or a table of boxes.", metavar="PHOTO")


@quiet()
def predict(
    photos: Annotated[list[str] | None, _photos] = None,
    boxes: Annotated[File, _in("Boxes: COCO results, YOLO txt, JSON lines, Parquet, any data set.")] = None,
    names: Annotated[
        Text, _in("Class names of the boxes, or of FILE.onnx: a file, or coco for COCO's 80 names.")
    ] = None,
    format: Annotated[Text, _in("Format of the boxes, if it is not clear from the path.")] = None,
    photo_folder: Annotated[File, _in("Folder of the photos that the boxes belong to.", "--photos")] = None,
    sizes: Annotated[File, _in("JSON of image sizes, for boxes in fractions.")] = None,
    detector: Annotated[Text, _in(DETECTOR)] = None,
    find: Annotated[Text, _in("What an open-vocabulary detector looks for: 'dog, leash, ball'.")] = None,
    every: Annotated[int | None, _in("Take every n-th frame of a video, or of a folder of frames.", min=1)] = None,
    limit: Annotated[int, _in("Process only this many images; 0 for all.", min=0)] = 0,
    model: Annotated[Text, _by("A shipped model, a folder, or an ONNX file.")] = None,
    backend: Annotated[Backend | None, _by("onnx runs without torch and starts faster; see docs/onnx.md.")] = None,
    labels: Annotated[Labels, _by(LABELS)] = "auto",
    min_score: Annotated[float, _by("Leave out boxes that score less than this.", min=0, max=1)] = 0.0,
    nms: Annotated[float, _by(NMS, min=0, max=1)] = 1.0,
    max_boxes: Annotated[int, _by("Keep at most this many boxes per image.", min=1, max=4096)] = 64,
    similarity: Annotated[float, _by(SIMILARITY, min=-1, max=2)] = 0.8,
    device: Annotated[str, _by("Where the model runs: cpu, cuda, ...")] = "cpu",
    out: Annotated[Path, _out("Folder for everything that is written.")] = Path("out/predict"),
    formats: Annotated[str, _out(FORMATS)] = "png",
    top: Annotated[int, _out("Keep at most this many relations per image.", min=0, max=10_000)] = 20,
    min_relation: Annotated[float | None, _out(FLOOR, min=0, max=1)] = None,
    informative: Annotated[float, _out(INFORMATIVE, min=0, max=1)] = 0.3,
    tidy: Annotated[bool, _out(TIDY)] = True,
    distributions: Annotated[bool, _out("Also write whole distributions (large).", "--distributions")] = False,
    jobs: Annotated[int, _run("Worker processes.", min=1, max=256)] = 1,
    batch: Annotated[int, _run("Number of images per write.", min=1, max=4096)] = 64,
    engine: Annotated[Kind, _run(ENGINE)] = "local",
    address: Annotated[Text, _run("Address of a Ray cluster; default: start one locally.")] = None,
    shard: Annotated[int, _run("With ray: images per file.", min=1, max=1_000_000)] = 1024,
    form: Annotated[Form, _run("With ray: format of the files.")] = "jsonl",
    resume: Annotated[bool, _run("Continue the run in the output folder, or fail.", "--resume")] = False,
    force: Annotated[bool, _run("Start again, and overwrite files that are in the way.", "--force")] = False,
) -> None:
    """Predict scene graphs of your own pictures and boxes.

    [bold]scenegpi predict photo.jpg[/bold] finds the boxes itself;
    [bold]scenegpi predict photo.jpg --boxes boxes.json[/bold] takes yours;
    [bold]scenegpi predict --boxes boxes.json[/bold] needs no photo.
    """
    from scenegpi.bulk.workers import Engine, Setup
    from scenegpi.commands.predict_run import Boxes, start
    from scenegpi.prediction.options import PredictOptions

    which = (labels, nms, max_boxes, min_score, top, min_relation)
    options = PredictOptions(*which, similarity, informative, tidy, distributions)
    setup = Setup(model or "", None, options, out, (), device, 0, backend)
    how = Engine(engine, jobs, batch, address, shard, form, resume, force)
    given = Boxes(boxes, format, names, photo_folder, sizes, detector, find)
    start(photos or [], given, every, limit, setup, how, formats)


@quiet()
def describe(
    photo: Annotated[Path, Argument(help="A photo.", readable=False)],
    style: Annotated[Style, Option(help="Sentences for people, triples or JSON for programs.")] = "sentences",
    limit: Annotated[int, Option(help="Print at most this many characters.", min=100)] = 2000,
    model: Model = None,
) -> None:
    """Say what is in a photo and where, the most informative relations first; for people and for language models."""
    from scenegpi.prediction import predict

    graph = predict(photo, **({"model": model} if model else {}))
    sys.stdout.write(graph.to_text(style, limit) + "\n")
