"""What an epoch of each preset costs on one core: `python benchmarks/training_cost.py --data VG150 [--words WORDS]`.

Some batches of real images, augmented, forward, backward and the optimiser's step, in CPU seconds of the process (not
by the clock, so that a busy machine does not change them much), scaled to all training images. A run is 6 epochs of
the baseline and 4 of the context. Validation of the held-out images once an epoch is counted too.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from scenegpi.models import PRESETS
from scenegpi.models.predict import predict_graphs
from scenegpi.training.batches import TrainingImages, train_loader
from scenegpi.training.config import train_config
from scenegpi.training.data_split import open_images
from scenegpi.training.losses import scene_loss
from scenegpi.training.run import make_module
from scenegpi.training.simulate import label_shares

BASELINE_EPOCHS, CONTEXT_EPOCHS = 6, 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--words", help="word vectors; without them gpi-linguistic is left out")
    parser.add_argument("--validation", type=int, default=1291)
    parser.add_argument("--batches", type=int, default=24)
    options = parser.parse_args()
    torch.set_num_threads(1)
    where = {"path": str(options.data), "validation": options.validation, "words": options.words}
    images = open_images(train_config({"data": where}).data)
    shares = label_shares(images.train, len(images.vocabulary.objects))
    table = Table(title=f"CPU seconds of one core, {len(images.train):,} training images")
    for column in ("preset", "ms an image", "an epoch", "validation", "a run, minutes"):
        table.add_column(column, justify="left" if column == "preset" else "right")
    first = 0.0
    for name, preset in PRESETS.items():
        if preset.context is not None and preset.context.words and options.words is None:
            continue
        config = train_config({"preset": name, "data": where, "optim": {"epochs": 10}})
        module = make_module(config, images, Path("cost"))
        module.model.train()
        optimiser = torch.optim.AdamW([p for p in module.model.parameters() if p.requires_grad], 1e-4)
        loader = train_loader(TrainingImages(images.train, config, shares))
        count, used = 0, 0.0
        batches = iter(loader)
        for k in range(options.batches + 1):
            started = time.process_time()
            batch = next(batches)
            scene_loss(module.model(batch), batch, config.loss).sum().backward()
            optimiser.step()
            optimiser.zero_grad()
            if k:  # the first one warms up
                used += time.process_time() - started
                count += batch.num_graphs
        started = time.process_time()
        for _ in predict_graphs(module.model, islice(images.validation, 200)):
            pass
        check = (time.process_time() - started) * len(images.validation) / 200
        epoch = used / count * len(images.train)
        if preset.context is None:
            first = total = BASELINE_EPOCHS * (epoch + check)
        else:
            total = first + CONTEXT_EPOCHS * (epoch + check)
        table.add_row(name, f"{1000 * used / count:.2f}", f"{epoch:.0f}", f"{check:.0f}", f"{total / 60:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
