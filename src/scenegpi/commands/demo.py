"""`scenegpi demo`: what the tool does, with what is in the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scenegpi.commands.terminal import make_console, say
from scenegpi.errors import counted

if TYPE_CHECKING:
    from rich.console import Console

    from scenegpi.data import Dataset
    from scenegpi.graph import SceneGraph


SCENES = (10, 16, 9)
"""Three scenes of a seed that no shipped model was trained on."""
SEED = 2018


def demo(out: Annotated[Path, typer.Option(help="Where pictures and files go.")] = Path("out/demo")) -> None:
    """Read a photo, draw scenes and predict their graphs, predict relations from boxes, convert files."""

    from scenegpi.data import convert, open_dataset, sample_path, statistics, validate

    console = make_console()
    console.rule("a photo in, a graph out")
    _own_photo(out)
    console.rule("pixels and boxes in, a graph out")
    _photos(out, console)
    dataset = open_dataset(sample_path())
    console.rule("boxes and labels in, relations out")
    _predict(dataset, out)
    console.rule("every common file format")
    figures = statistics(dataset)
    say(f"the sample: {figures.images} images, {figures.boxes} boxes, {figures.relations} relations")
    for name in ("scenes.jsonl", "scenes.json", "visual-genome"):
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


def _own_photo(out: Path) -> None:
    """A photo in the public domain that comes with matplotlib: boxes, names and relations from the pixels alone."""
    import matplotlib

    from scenegpi import predict

    photo = Path(matplotlib.get_data_path()) / "sample_data" / "grace_hopper.jpg"
    if not photo.is_file():
        say(f"{photo}: not there, so no photo is read")
        return
    graph = predict(photo)
    say(f"Grace Hopper (photo: James S. Davis, US Navy, public domain): {', '.join(graph.names)}")
    for triplet in graph.triplets(top=8):
        say(f"  {triplet}")
    say(f"  {graph.draw(out / 'grace_hopper.png', photo)}")


def _photos(out: Path, console: Console) -> None:
    """Rendered scenes: the label of each box by itself, and among the others."""
    from scenegpi import PredictOptions, Predictor
    from scenegpi.files import whole_file
    from scenegpi.rendered import render_scene
    from scenegpi.viz.terminal import render

    predictor = Predictor("rendered", options=PredictOptions(top=10))
    vision = predictor.model.vision
    if vision is None:
        raise RuntimeError("the shipped model 'rendered' does not use photos")
    alone = among = boxes = 0
    for index in SCENES:
        photo, truth = render_scene(SEED, index)
        file = out / f"scene-{index}.jpg"
        with whole_file(file) as part:
            photo.save(part, format="JPEG", quality=92)
        found = predictor(file, truth.boxes)
        looked = vision.label_dist(file, truth).argmax(axis=1)
        alone += int((looked == truth.labels).sum())
        among += int((found.labels == truth.labels).sum())
        boxes += len(truth)
        said = {triplet[:3] for triplet in truth.triplets()}
        if index == SCENES[0]:
            console.print(render(found, columns=min(max(console.width - 1, 16), 100)))
        say(f"{file}: {counted(len(truth), 'box')}")
        for k in range(len(truth)):
            if looked[k] != found.labels[k]:
                first, last = truth.vocabulary.objects[looked[k]], found.names[k]
                mark = "+" if last == truth.names[k] else "-" if first == truth.names[k] else " "
                say(f"  {mark} by itself: {first}; with context: {last}")
        for triplet in found.triplets(top=6):
            say(f"  {'+' if triplet[:3] in said else ' '} {triplet}")
        say(f"  {found.draw(out / f'scene-{index}.png', file)}")
    say(f"correct labels: {alone} of {boxes} from each box alone, {among} with context (+ agrees with the scene)")


def _predict(dataset: Dataset, out: Path) -> None:
    """The layout model on the sample scenes; + marks relations that the scene has, too."""
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
