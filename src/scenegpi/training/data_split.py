"""Which images train and which validate, from what the configuration says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scenegpi.data.columns import SPLITS
from scenegpi.data.dataset import Dataset
from scenegpi.data.distributions import attach_distributions
from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError, OptionError
from scenegpi.graph import SceneGraph
from scenegpi.training.config import DataConfig, TrainConfig
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.public import load_words
from scenegpi.words.vectors import WordVectors

ONE_IN = 20


class Images(NamedTuple):
    """Training and validation graphs, all with at least a box and a relation, and their vocabulary.

    Photos are None for an image without one; there are none at all where nobody asked for them.
    """

    train: list[SceneGraph]
    validation: list[SceneGraph]
    vocabulary: Vocabulary
    train_photos: Sequence[Path | None] = ()
    validation_photos: Sequence[Path | None] = ()


def open_images(config: DataConfig, photos: bool = False) -> Images:
    """Training and validation images, and where their photos lie; DataError if there are no images of either."""
    if not config.path:
        raise OptionError("data.path: which data set?")
    dataset = open_dataset(config.path, format=config.format, images=config.photos)
    if not dataset.vocabulary.predicates:
        raise DataError(config.path, "boxes without relations: nothing to learn from")
    if config.distributions is not None:
        dataset = attach_distributions(dataset, config.distributions)
    train, validation = _split(dataset, config, photos)
    if config.images:
        train = train[: config.images]
    if not len(train) or not len(validation):
        raise DataError(config.path, f"{len(train)} training and {len(validation)} validation images with a relation")
    found = [[data.image_path(i) for i in range(len(data))] if photos else [] for data in (train, validation)]
    return Images(list(train), list(validation), dataset.vocabulary, *found)


def open_words(config: TrainConfig, vocabulary: Vocabulary) -> WordVectors | None:
    """The word vectors that the model reads; OptionError if it needs some and none are named."""
    context = config.model.context
    if context is None or not context.words:
        return None
    if config.data.words is None:
        raise OptionError(f"data.words: {config.preset} reads word vectors, and no file of them is named (--words)")
    return load_words(Path(config.data.words), [*vocabulary.objects, *vocabulary.predicates])


def _split(dataset: Dataset, config: DataConfig, photos: bool) -> tuple[Dataset, Dataset]:
    codes = dataset.split_codes()
    if config.splits == "all" or not (codes == SPLITS["train"]).any():
        return _set_aside(dataset.drop_empty(), config, photos)
    if not config.validation and (codes == SPLITS["val"]).any():
        return dataset.split("train").drop_empty(), dataset.split("val").drop_empty()
    count = config.validation or max(len(dataset.split("train").drop_empty()) // ONE_IN, 1)
    parts = [dataset.split(name, count, config.validation_seed).drop_empty() for name in ("train", "val")]
    return parts[0], parts[1]


def _set_aside(dataset: Dataset, config: DataConfig, photos: bool) -> tuple[Dataset, Dataset]:
    """So many images to validate, of those with a photo where photos count; the first, or drawn by the seed."""
    able = np.arange(len(dataset))
    if photos:
        shown = [i for i in able.tolist() if dataset.image_path(i) is not None]
        able = np.array(shown, dtype=np.int64) if shown else able
    if config.validation_seed is not None:
        able = np.random.default_rng(config.validation_seed).permutation(able)
    taken = np.sort(able[: config.validation or max(len(able) // ONE_IN, 1)])
    return dataset[np.setdiff1d(np.arange(len(dataset)), taken)], dataset[taken]
