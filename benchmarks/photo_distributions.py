"""What the label predictor of a run says of every box, as one npz file: what `benchmarks/systems.py` needs for SGCls.

    python benchmarks/photo_distributions.py --data VG150 --photos DIR --vision RUN --out FILE

RUN is a run of the recipe `vg150-photo`. Of training photos the distributions are the held-out ones, by the half that
has not seen the photo; of those that the run set aside, and of test photos, those of the network that is kept. Training
images without a photo get resampled ones (scenegpi.training.label_resampling), drawn once; test images without a photo
are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from scenegpi.data import open_dataset
from scenegpi.data.distributions import image_key, write_distributions
from scenegpi.files import read_object
from scenegpi.graph import SceneGraph
from scenegpi.models import load_model
from scenegpi.options import override
from scenegpi.training import TrainConfig
from scenegpi.training.data_split import open_images
from scenegpi.training.label_resampling import LabelResampler
from scenegpi.training.vision_stage import with_label_dist
from vg150_photos import photographed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--photos", type=Path, required=True)
    parser.add_argument("--vision", type=Path, required=True, help="a run of the recipe vg150-photo")
    parser.add_argument("--seed", type=int, default=0, help="of what is resampled")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    count = write_distributions(options.out, distributions(options), np.float16)
    print(f"wrote {options.out}: {count:,} images")


def distributions(options: argparse.Namespace) -> Iterator[SceneGraph]:
    """Graphs with `label_dist`: of the training images, and of the test images with a photo."""
    config = override(TrainConfig(), read_object(options.vision / "config.json"), "")
    data = replace(config.data, path=str(options.data), photos=str(options.photos))
    config = replace(config, data=data)
    images = with_label_dist(config, open_images(data, photos=True), options.vision)
    resampler = LabelResampler(images.train, len(images.vocabulary.objects))
    rng = np.random.default_rng(options.seed)
    known = {image_key(graph): graph for graph in (*images.train, *images.validation) if graph.label_dist is not None}
    for graph in open_dataset(options.data, "train").drop_empty():
        yield known.get(image_key(graph)) or resampler(graph, rng)
    yield from photographed(
        load_model(options.vision / "model"), open_dataset(options.data, "test", images=options.photos)
    )


if __name__ == "__main__":
    main()
