"""`scenegpi figure`: pictures for papers and talks, made from a model and a data set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Option

from scenegpi.commands.options import Device, File, Photos, Split, Text
from scenegpi.commands.terminal import say
from scenegpi.errors import DataError, counted

if TYPE_CHECKING:
    from scenegpi.data import Dataset

app = typer.Typer(help="Draw what a model does.", no_args_is_help=True)

Task = Literal["predcls", "sgcls"]
Out = Annotated[Path, Option(help="The picture to write, .png or .svg.")]
Data = Annotated[File, Option(help="A data set of any known format; by default the sample.")]
Model = Annotated[str, Option(help="A model: a folder or a shipped name.")]
Given = Annotated[Task, Option(help="Labels given (predcls), or predicted too (sgcls).")]
BASELINE = "Another model for the third column; by default MODEL without its context."
IMAGE = "An image's id or file name, may be repeated; by default those that context changes most."
NODE = "Index of the box whose attention is shown; by default the box with the most concentrated attention."


@app.command()
def qualitative(
    out: Out,
    data: Data = None,
    split: Split = None,
    photos: Photos = None,
    model: Model = "vg150-layout",
    baseline: Annotated[Text, Option(help=BASELINE)] = None,
    task: Given = "predcls",
    device: Device = "cpu",
    image: Annotated[list[str] | None, Option(help=IMAGE)] = None,
    rows: Annotated[int, Option(help="Number of images to pick.", min=1, max=20)] = 3,
    limit: Annotated[int, Option(help="Number of images to pick from, the first ones.", min=1)] = 1000,
) -> None:
    """Input, ground truth, baseline and GPI side by side; labels that context corrects or spoils are marked.

    Picks images of at most 12 boxes in which context corrects the most labels, and one in which it spoils the most.
    """
    from scenegpi.models import load_model
    from scenegpi.paper.figures.compare import compare, first_stage, pick
    from scenegpi.paper.figures.qualitative import draw_qualitative
    from scenegpi.viz.picture import picture_file

    picture_file(out)
    network = load_model(model, device)
    first = first_stage(network) if baseline is None else load_model(baseline, device)
    dataset = _open(data, split, photos)
    totals = None
    if image:
        chosen = [dataset.find(name) for name in image]
    else:
        boxes, relations = dataset.counts()
        usable = (boxes > 1) & (relations > 0)
        if task == "sgcls" and network.vision is not None:
            for k in usable.nonzero()[0].tolist():
                usable[k] = dataset.image_path(k) is not None or dataset[k].label_dist is not None
        dataset = dataset[usable.nonzero()[0][:limit]]
        if sys.stderr.isatty():
            say(f"comparing on {counted(len(dataset), 'image')} ...", error=True)
        chosen, totals = pick(compare(dataset, network, first, task), rows)
    if not chosen:
        raise DataError(dataset.path, "no image with 2 to 12 boxes and 1 to 12 annotated pairs to show")
    picked = dataset[chosen]
    shown = list(compare(picked, network, first, task))
    where = [picked.image_path(k) for k in range(len(picked))]
    draw_qualitative(shown, where, out, (_name(baseline or "baseline"), _name(model)), totals)
    for row in shown:
        name = row.truth.file or row.truth.image_id
        say(f"image {name}: {row.corrected} corrected, {row.spoiled} spoiled of {counted(len(row.pairs), 'pair')}")
    if totals is not None:
        say("{images:,} images: {corrected:,} labels corrected, {spoiled:,} spoiled, {pairs:,} pairs".format(**totals))
    say(f"{out}: drawn")


@app.command()
def attention(
    out: Out,
    data: Data = None,
    image: Annotated[Text, Option(help="The image's id or file name; by default the first.")] = None,
    node: Annotated[int | None, Option(help=NODE)] = None,
    split: Split = None,
    photos: Photos = None,
    model: Model = "vg150-layout",
    task: Given = "predcls",
    device: Device = "cpu",
) -> None:
    """Attention of one object over its neighbours, and of the graph vector over all objects."""
    from scenegpi.models import load_model
    from scenegpi.prediction import PredictOptions, Predictor, aligned
    from scenegpi.viz.attention import attention as weigh
    from scenegpi.viz.attention import draw_attention, most_telling
    from scenegpi.viz.picture import picture_file

    picture_file(out)
    network, dataset = load_model(model, device), _open(data, split, photos)
    at = 0 if image is None else dataset.find(image)
    graph = next(aligned(dataset[[at]], network.vocabulary))
    photo = None if network.vision is None else dataset.image_path(at)
    weights = weigh(Predictor(network, options=PredictOptions.scoring(task), device=device), graph, photo)
    node = most_telling(weights) if node is None and len(graph) else node
    draw_attention(graph, weights, out, node, dataset.image_path(at))
    say(f"{out}: attention of box {node} of image {graph.file or graph.image_id}")


@app.command()
def proof(out: Out) -> None:
    """The construction in the proof of Theorem 1: three nodes, a hash of size 5, and the matrices of phi and alpha."""
    from scenegpi.paper.figures.proof import draw_proof

    say(f"{draw_proof(out)}: drawn")


@app.command()
def architecture(
    out: Out,
    model: Model = "vg150-layout",
    data: Data = None,
    image: Annotated[Text, Option(help="The image whose boxes are counted; by default the first.")] = None,
    split: Split = None,
    device: Device = "cpu",
) -> None:
    """The GPI layer of a model as a diagram, with the tensor shapes for one image."""
    from scenegpi.models import load_model
    from scenegpi.paper.figures.architecture import draw_architecture
    from scenegpi.prediction import aligned

    network, dataset = load_model(model, device), _open(data, split, None)
    at = 0 if image is None else dataset.find(image)
    graph = next(aligned(dataset[[at]], network.vocabulary))
    say(f"{draw_architecture(network, graph, out, _name(model))}: drawn")


def _open(data: Path | None, split: str | None, photos: Path | None) -> Dataset:
    from scenegpi.data import open_dataset, sample_path

    return open_dataset(data or sample_path(), split, images=photos)


def _name(model: str) -> str:
    """A model's name; for RUN/model that of the run."""
    path = Path(model)
    return (path.resolve().parent.name if path.name == "model" else path.name) or model
