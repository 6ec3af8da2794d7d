"""`scenegpi demo`: what the tool does, with what is in the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from scenegpi.commands.terminal import make_console, say
from scenegpi.errors import counted
from scenegpi.files import writing

if TYPE_CHECKING:
    from rich.console import Console

    from scenegpi.data import Dataset
    from scenegpi.graph import SceneGraph


GIVEN = ((0, 5, 512, 600), (130, 5, 385, 235), (135, 130, 365, 395))
"""Boxes around the officer, her hat and her face, drawn by hand."""
PICTURES = ("grace_hopper.png", "grace_hopper-boxes.png")
FILES = ("scenes.jsonl", "scenes.json", "visual-genome")


def demo(out: Annotated[Path, Option(help="Folder for pictures and files.")] = Path("out/demo")) -> None:
    """Take a tour: read a photo, with and without given boxes, relate labelled boxes, convert files."""
    from scenegpi.bulk.manifest import Manifest
    from scenegpi.data import convert, open_dataset, sample_path, statistics, validate

    console, dataset = make_console(), open_dataset(sample_path())
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
    with Manifest(out, force=None) as ours:
        ours.claim([*PICTURES, *(f"predicted-{graph.image_id}.png" for graph in dataset), *FILES])
    console.rule("a photo in, a graph out")
    _photo(out, console)
    console.rule("boxes and labels in, relations out")
    _predict(dataset, out)
    console.rule("every common file format")
    figures = statistics(dataset)
    say(f"the sample: {figures.images} images, {figures.boxes} boxes, {figures.relations} relations")
    for name in FILES:
        count = convert(dataset, out / name, overwrite=True)
        same = all(a == b for a, b in zip(dataset, open_dataset(out / name), strict=True))
        errors = validate(out / name).errors
        say(f"{out / name}: {count} scenes written, read back {'the same' if same else 'DIFFERENT'}, {errors} defects")
    console.rule("the order of the boxes does not matter")
    _invariance(dataset[0])
    console.rule("next: your own picture")
    say("scenegpi predict PHOTO                  boxes, names and relations of your photo")
    say("scenegpi predict PHOTO --boxes FILE     your photo with the boxes of any detector: COCO results, YOLO, JSON")
    say("scenegpi data stats DATA                your own data set, in any common format")
    say("scenegpi eval PREDICTIONS --task ...    score any tool's predictions")


def _photo(out: Path, console: Console) -> None:
    """A photo in the public domain that comes with matplotlib: by its pixels alone, then with given boxes."""
    import matplotlib

    from scenegpi import Predictor
    from scenegpi.viz.characters import render

    photo = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    if not photo.is_file():
        say(f"{photo}: not found; the part with a photo is skipped")
        return
    predictor = Predictor("vg150-photo")
    graph = predictor(photo)
    console.print(render(graph, columns=min(max(console.width - 1, 16), 100)))
    say(f"{graph.draw(out / PICTURES[0], photo)}: Grace Hopper, by James S. Davis, US Navy (public domain)")
    console.rule("a photo and boxes in, a graph out")
    given = predictor(photo, boxes=list(GIVEN))
    for (x1, y1, x2, y2), name in zip(GIVEN, given.names, strict=False):
        say(f"({x1}, {y1}) to ({x2}, {y2}): {name}")
    for triplet in given.triplets(top=4):
        say(f"  {triplet}")
    say(f"{given.draw(out / PICTURES[1], photo)}")


def _predict(dataset: Dataset, out: Path) -> None:
    """The layout model on the sample scenes; + marks relations that are also annotated in the scene."""
    from scenegpi import PredictOptions, Predictor

    predictor = Predictor("vg150-layout", options=PredictOptions(top=8))
    for graph in dataset:
        found = predictor(boxes=graph.boxes, labels=graph.names, width=graph.width, height=graph.height)
        said = {triplet[:3] for triplet in graph.triplets()}
        say(f"{graph.file}: {counted(len(graph), 'box')}")
        for triplet in found.triplets(top=8):
            say(f"  {'+' if triplet[:3] in said else ' '} {triplet}")
        say(f"  {found.replace(file=graph.file).draw(out / f'predicted-{graph.image_id}.png')}")


def _invariance(graph: SceneGraph) -> None:
    """Reorders the nodes of a scene at random: GPI layers don't notice, a network that reads a list does."""
    import torch

    from scenegpi.features import SceneBatch, pair_geometry
    from scenegpi.gpi import FlatGraph, GPILayer, HashConstruction, apply_black_box, permutation_gap
    from scenegpi.gpi.proof import shortest_paths

    torch.manual_seed(0)
    batch = SceneBatch.of([graph])
    edges = pair_geometry(batch.boxes, batch.sizes, batch.edge_index, batch.batch)
    boxes = (batch.boxes / batch.sizes.repeat(1, 2)).float()
    flat = FlatGraph(boxes, batch.edge_index, edges)
    for kind in ("sum", "neighbour", "feature"):
        layer = GPILayer(4, edges.shape[1], 10, 5, hidden=64, aggregation=kind)
        say(f"GPI layer ({kind}):  labels change by {permutation_gap(layer, flat):.0e} when the boxes are reordered")
    lstm = torch.nn.LSTM(4, 10)
    gap = permutation_gap(lambda x, **_: lstm(x)[0], flat)
    say(f"an LSTM over the list:  by {gap:.1f}")
    marked = torch.cat([(torch.arange(len(boxes)) == 0).float().unsqueeze(1), boxes], 1)
    lengths = edges.abs()
    proof = HashConstruction(shortest_paths)(marked, batch.edge_index, lengths)
    same = torch.allclose(proof, apply_black_box(shortest_paths, marked, batch.edge_index, lengths))
    say(f"the proof of Theorem 1, run on shortest paths: labels {'reproduced exactly' if same else 'DIFFER'}")
