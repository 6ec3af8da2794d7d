"""`scenegpi demo`: what the tool does, on what ships in the package."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from scenegpi.data import Dataset
    from scenegpi.graph import SceneGraph


def demo(out: Annotated[Path, typer.Option(help="Where pictures and files go.")] = Path("out/demo")) -> None:
    """Shows the shipped sample scenes, predicts their relations, converts them, and runs the theorem on them."""
    from rich.console import Console

    from scenegpi.data import convert, open_dataset, sample_path, statistics, validate
    from scenegpi.viz.picture import draw
    from scenegpi.viz.terminal import render

    console = Console()
    dataset = open_dataset(sample_path())
    figures = statistics(dataset)
    console.rule("the sample scenes")
    console.print(f"{figures.images} images, {figures.boxes} boxes, {figures.relations} relations\n")
    console.print(render(dataset[0], columns=min(max(console.width - 1, 16), 100)))
    console.rule("pictures and files")
    for graph in dataset:
        print(f"{draw(graph, out / f'scene-{graph.image_id}.png')}: the scene as boxes and as a graph")
    for name in ("scenes.jsonl", "scenes.json", "visual-genome"):
        count = convert(dataset, out / name, overwrite=True)
        same = all(a == b for a, b in zip(dataset, open_dataset(out / name), strict=True))
        errors = validate(out / name).errors
        print(
            f"{out / name}: {count} scenes written, read back {'the same' if same else 'DIFFERENT'}, {errors} defects"
        )
    console.rule("boxes and labels in, relations out")
    _predict(dataset, out)
    console.rule("the order of the boxes does not matter")
    _invariance(dataset[0])
    console.rule("next")
    print("scenegpi data show                      the sample in the terminal")
    print("scenegpi data stats DATA                your own data set, in any of the field's formats")
    print("scenegpi eval PREDICTIONS --task ...    score any tool's predictions")
    print("scenegpi experiment labelling --quick   the paper's experiment, in a minute or two")


def _predict(dataset: Dataset, out: Path) -> None:
    """The shipped model on the scenes' boxes and labels alone; + marks what the scene's own relations say too."""
    from scenegpi import load_model, predict

    model = load_model("vg150-layout")
    for graph in dataset:
        found = predict(model, graph.boxes, graph.names, width=graph.width, height=graph.height, top=8)
        said = {triplet[:3] for triplet in graph.triplets()}
        print(f"{graph.file}: {len(graph)} boxes")
        for triplet in found.triplets(top=8):
            print(f"  {'+' if triplet[:3] in said else ' '} {triplet}")
        print(f"  {found.replace(file=graph.file).draw(out / f'predicted-{graph.image_id}.png')}")


def _invariance(graph: SceneGraph) -> None:
    """Relabels the nodes of a scene at random: GPI layers don't notice, a network that reads a list does."""
    import torch

    from scenegpi.features import SceneBatch, pair_geometry
    from scenegpi.gpi import FlatGraph, GPILayer, HashConstruction, apply_black_box, permutation_gap
    from scenegpi.gpi.black_boxes import shortest_paths

    torch.manual_seed(0)
    batch = SceneBatch.of([graph])
    edges = pair_geometry(batch.boxes, batch.sizes, batch.edge_index, batch.batch)
    boxes = (batch.boxes / batch.sizes.repeat(1, 2)).float()
    flat = FlatGraph(boxes, batch.edge_index, edges)
    for kind in ("sum", "neighbour", "feature"):
        layer = GPILayer(4, edges.shape[1], 10, 5, hidden=64, aggregation=kind)
        print(f"GPI layer ({kind}):  labels change by {permutation_gap(layer, flat):.0e} when the boxes are relisted")
    lstm = torch.nn.LSTM(4, 10)
    gap = permutation_gap(lambda x, **_: lstm(x)[0], flat)
    print(f"an LSTM over the list:  by {gap:.1f}")
    marked = torch.cat([(torch.arange(len(boxes)) == 0).float().unsqueeze(1), boxes], 1)
    lengths = edges.abs()
    proof = HashConstruction(shortest_paths)(marked, batch.edge_index, lengths)
    same = torch.allclose(proof, apply_black_box(shortest_paths, marked, batch.edge_index, lengths))
    print(f"the proof of Theorem 1, run on shortest paths: labels {'given back exactly' if same else 'DIFFER'}")
