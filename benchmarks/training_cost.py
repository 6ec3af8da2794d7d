"""What an epoch of each preset costs on one core: `python benchmarks/training_cost.py --data VG150 [--words WORDS]`.

CPU seconds of the process (not by the clock, so that a busy machine does not change them much): a run of three epochs
less a run of one, on --limit images, scaled to all training images. Validation is not counted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from rows import BASELINE, preset_config, usable_presets
from scenegpi.training import find_recipe, read_config, train
from scenegpi.training.config import merged
from scenegpi.training.data_split import open_images

RECIPE = "vg150-layout"
EPOCHS = (1, 3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--words", type=Path, help="word vectors; without them gpi-linguistic is left out")
    parser.add_argument("--limit", type=int, default=1500)
    options = parser.parse_args()
    torch.set_num_threads(1)
    where: dict[str, Any] = {"path": str(options.data)}
    if options.words is not None:
        where["words"] = str(options.words)
    recipe = read_config(find_recipe(RECIPE), {"data": where})
    images = len(open_images(recipe.data).train)
    values = {"data": {**where, "limit": options.limit, "validation": 0}, "optim": {"keep": "last"}}
    table = Table(title=f"CPU seconds of one core, {images:,} training images")
    for column in ("preset", "ms per image", "per epoch", "a run, minutes"):
        table.add_column(column, justify="left" if column == "preset" else "right")
    first = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for name in usable_presets(options.words):
            used = []
            for epochs in EPOCHS:
                start = Path(folder) / f"{BASELINE}1"
                config = preset_config(RECIPE, name, merged(values, {"epochs": epochs}), start)
                started = time.process_time()
                with redirect_stdout(StringIO()):
                    train(config, Path(folder) / f"{name}{epochs}")
                used.append(time.process_time() - started)
            image = (used[1] - used[0]) / (EPOCHS[1] - EPOCHS[0]) / options.limit
            if name == BASELINE:
                first = total = recipe.baseline.epochs * image * images
            else:
                total = first + recipe.context.epochs * image * images
            table.add_row(name, f"{1000 * image:.2f}", f"{image * images:.0f}", f"{total / 60:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
