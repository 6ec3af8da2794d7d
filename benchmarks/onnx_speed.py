r"""Torch and onnxruntime beside each other: load, one call, batches, from the shell.

    python benchmarks/onnx_speed.py [--model vg150-layout] [--boxes 12] [--images 496] [--data DATA --limit 500] \
        [--eight-bits]
    python benchmarks/onnx_speed.py --photo [--model vg150-photo]

All on one thread, in seconds of the processor, so that a busy machine matters little; the median of the rounds. Images
are random boxes and labels. With --data, PredCls recall of each on the same test images. With --eight-bits, a
third row: onnxruntime with weights of 8 bits.

With --photo: a photo (512 x 600 pixels, from matplotlib's examples) to its graph, boxes found and named, by a
`Predictor` of either backend and by the file of `scenegpi export --find`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from scenegpi.data import Dataset, open_dataset, write_jsonl
from scenegpi.features.arrays import PAIRS, SceneArrays
from scenegpi.graph import SceneGraph
from scenegpi.metrics import Plan, Protocol, RecallState
from scenegpi.models import load_model
from scenegpi.onnx.exported import exported_file
from scenegpi.onnx.runtime import OnnxModel
from scenegpi.onnx.session import Session
from scenegpi.prediction import PredictOptions, Predictor, scored_pairs
from scenegpi.prediction.model import Model
from scenegpi.vision.photos import open_photo
from timing import random_graphs, scenegpi, timed

ROUNDS = 9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="by default vg150-layout, with --photo vg150-photo")
    parser.add_argument("--photo", action="store_true", help="a photo instead of boxes")
    parser.add_argument("--boxes", type=int, default=12)
    parser.add_argument("--images", type=int, default=496)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--limit", type=int, default=500)
    parser.add_argument("--eight-bits", action="store_true", help="a row with weights of 8 bits")
    options = parser.parse_args()
    options.model = options.model or ("vg150-photo" if options.photo else "vg150-layout")
    torch.set_num_threads(1)
    console = Console(width=130)
    if options.photo:
        console.print(photo_table(options.model))
        return
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        file = exported_file(options.model)
        whole = load_model(options.model)
        files = {"torch": None, "onnx": file}
        if options.eight_bits:
            files["onnx, 8 bits"] = eight_bits(file, folder)
        graphs = list(random_graphs(whole.vocabulary, options.images, options.boxes))
        data = None if options.data is None else open_dataset(options.data, options.split)[: options.limit]
        table = Table("", "MB", "load s", "one call ms", "batch, ms per image", "shell s", "off torch by", "R@50")
        for name, each in files.items():
            table.add_row(name, *row(each, graphs, whole, options, data, folder))
        console.print(table)
        if data is not None:
            console.print(
                f"R@50: PredCls, graph constraint, {len(data):,} images of {options.data.name} {options.split}"
            )


def photo_table(model: str) -> Table:
    """A photo to its graph: what it costs, and how far the scores are from torch's."""
    from matplotlib.cbook import get_sample_data

    photo = open_photo(get_sample_data("grace_hopper.jpg", asfileobj=False))
    here, there = Predictor(model, "finder"), Predictor(model, "finder", backend="onnx")
    session = Session(exported_file(model, "find"), "find")  # with Resize in the file
    outputs = list(session.outputs)
    wanted, found = here(photo), there(photo)
    off = float(np.abs(np.asarray(wanted.scores) - np.asarray(found.scores)).max())
    table = Table("", "photo to graph, ms", "boxes", "off torch by")
    table.add_row("torch", f"{1000 * median(lambda: here(photo)):.0f}", str(len(wanted)), "")
    table.add_row("onnx", f"{1000 * median(lambda: there(photo)):.0f}", str(len(found)), f"{off:.1e}")
    whole = session.run(outputs, {"image": photo})
    spent = median(lambda: session.run(outputs, {"image": photo}))
    table.add_row("file of --find", f"{1000 * spent:.0f}", str(len(whole[0])), "")
    return table


def eight_bits(file: Path, folder: Path) -> Path:
    """The same model with weights of 8 bits."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(file)
    del model.graph.value_info[:]  # shapes that onnxruntime's tool takes for other ones
    onnx.save(model, folder / "whole.onnx")
    quantize_dynamic(folder / "whole.onnx", folder / "eight.onnx", weight_type=QuantType.QInt8)
    return folder / "eight.onnx"


def row(
    file: Path | None,
    graphs: list[SceneGraph],
    whole: Model,
    options: argparse.Namespace,
    data: Dataset | None,
    folder: Path,
) -> list[str]:
    def load() -> Model:
        return load_model(options.model) if file is None else OnnxModel(file)

    model, one = load(), SceneArrays.of(graphs[:1])
    together = list(SceneArrays.of(graphs).pieces(PAIRS))
    wanted = [whole.distributions(each, "predcls") for each in together]
    found = [model.distributions(each, "predcls") for each in together]
    off = max(float(np.abs(a - b).max()) for x, y in zip(wanted, found, strict=True) for a, b in zip(x, y, strict=True))
    batch = median(lambda: [model.distributions(each, "predcls") for each in together], 5) / len(graphs)
    return [
        "" if file is None else f"{file.stat().st_size / 1e6:.1f}",
        f"{median(load, 3):.3f}",
        f"{1000 * median(lambda: model.distributions(one, 'predcls'), 20 * ROUNDS):.2f}",
        f"{1000 * batch:.2f}",
        f"{shell(file, options.model, graphs[0], folder):.2f}",
        f"{off:.1e}",
        "" if data is None else f"{recall(model, data):.2f}",
    ]


def median(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Seconds of the processor."""
    return float(np.median(timed(work, rounds)[:, 1]))


def shell(file: Path | None, name: str, graph: SceneGraph, folder: Path) -> float:
    """Seconds of the processor from the shell to the graph of one image in a file, the least of three."""
    write_jsonl(folder / "boxes.jsonl", [graph])
    model = shlex.quote(str(file or name))
    words = f"predict --boxes boxes.jsonl --model {model} --formats none --force --out out-{file is None}"
    return min(scenegpi(f"{words}-{k}", folder)[1] for k in range(3))


def recall(model: Model, data: Dataset) -> float:
    pairs = scored_pairs(Predictor(model, options=PredictOptions.scoring("predcls")), data)
    return 100 * RecallState(Plan(Protocol("predcls"), model.vocabulary)).stream(pairs).result().figures["R@50"]


if __name__ == "__main__":
    main()
