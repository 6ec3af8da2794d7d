"""The training and validation images of a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from scenegpi.data.dataset import Dataset
from scenegpi.data.distributions import attach_distributions
from scenegpi.data.graphs import SPLITS
from scenegpi.data.open import open_dataset
from scenegpi.errors import DataError, OptionError
from scenegpi.graph import SceneGraph
from scenegpi.training.config import DataConfig, TrainConfig
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.label_map import shipped_words
from scenegpi.words.vectors import WordVectors, load_words

ONE_IN = 20


class Images(NamedTuple):
    """Training and validation graphs, all with at least a box and a relation, and their vocabulary.

    Photos are None for an image without one; there are none at all if the model uses none.
    """

    train: list[SceneGraph]
    validation: list[SceneGraph]
    vocabulary: Vocabulary
    train_photos: Sequence[Path | None] = ()
    validation_photos: Sequence[Path | None] = ()


def open_images(config: DataConfig, photos: bool = False) -> Images:
    """Training and validation images, and where their photos are; DataError if there is nothing to train on."""
    if not config.path:
        raise OptionError("--data is required: the data set to train on")
    dataset = open_dataset(config.path, format=config.format, images=config.photos)
    if not dataset.vocabulary.predicates:
        raise DataError(config.path, "boxes without relations: nothing to learn from")
    train, validation = _split(dataset, config, photos)
    if config.distributions is not None:
        train, validation = (attach_distributions(each, config.distributions) for each in (train, validation))
    train = train.spread(config.limit)
    if not len(train) or (not len(validation) and config.validation != 0):
        raise DataError(config.path, f"{len(train)} training and {len(validation)} validation images with a relation")
    found = [[data.image_path(i) for i in range(len(data))] if photos else [] for data in (train, validation)]
    return Images(list(train), list(validation), dataset.vocabulary, *found)


def open_words(config: TrainConfig, vocabulary: Vocabulary) -> WordVectors | None:
    """The word vectors that the model reads; by default the small table in the package."""
    if not config.model.words:
        return None
    if config.data.words is None:
        return shipped_words()
    return load_words(Path(config.data.words), [*vocabulary.objects, *vocabulary.predicates])


def _split(dataset: Dataset, config: DataConfig, photos: bool) -> tuple[Dataset, Dataset]:
    codes = dataset.split_codes()
    named = bool((codes == SPLITS["train"]).any())
    chosen = codes == SPLITS["train"] if named else np.ones(len(dataset), dtype=bool)
    train = dataset[np.flatnonzero(chosen)].drop_empty()
    own = dataset[np.flatnonzero((codes == SPLITS["val"]) & ~chosen)].drop_empty()
    if config.validation is None and named and len(own):
        return train, own
    count = max(len(train) // ONE_IN, 1) if config.validation is None else config.validation
    if count >= len(train):
        raise DataError(
            config.path, f"{count} validation images to set aside of only {len(train)} images with a relation"
        )
    aside = train[np.arange(count)]
    # A model that uses photos is scored on images with a photo, if there are any.
    found = [i for i in range(count) if aside.image_path(i) is not None] if photos else []
    return train[np.arange(count, len(train))], aside[np.array(found)] if found else aside
