"""Everything that a training run can be told, as data: from defaults, a preset, and a TOML file.

    preset = "gpi-feature-attention"
    task = "predcls"
    [data]
    path = "vg150"
    validation = 1291
    [model.context]
    hidden = 256
    [optim]
    epochs = 8

A key that is no setting is refused, with the file's name and the field's.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from scenegpi.errors import DataError, OptionError
from scenegpi.files import check_file, reason
from scenegpi.models.config import ModelConfig
from scenegpi.models.presets import preset
from scenegpi.options import bounded, override
from scenegpi.vision.config import FitOptions, VisionConfig

LARGEST_FILE = 1 << 20
_DEFAULT_PRESET = "gpi-feature-attention"
_DEFAULT_MODEL = preset(_DEFAULT_PRESET)


@dataclass(frozen=True)
class DataConfig:
    """Which images.

    Args:
        path, format: as `open_dataset` takes them.
        splits: "train" trains on the images that the data calls so; "all" on all but those set aside to validate.
        photos: folder of the photos, for models that see; by default where the data set has them.
        cache: folder where the looks of photos are kept; by default in the run's.
        validation: so many training images are set aside; 0 takes the data's own validation images, or else one
            training image in twenty.
        validation_seed: draws them; without it the first ones are taken.
        images: train on so many images only; 0 for all.
        distributions: npz file of another system's label and pair distributions.
        words: file of word vectors, for models that read them.
    """

    path: str = ""
    format: str | None = None
    splits: Literal["train", "all"] = "train"
    photos: str | None = None
    cache: str | None = None
    validation: int = bounded(0, 0, 10**9)
    validation_seed: int | None = None
    images: int = bounded(0, 0, 10**9)
    distributions: str | None = None
    words: str | None = None


@dataclass(frozen=True)
class LossConfig:
    """The loss by name, and its weights; see `scenegpi.training.losses`.

    Args:
        kind: "paper", "released", "balanced", "metric" or "coverage".
        entities: weight of an entity's label.
        negatives: weight of a pair without a relation.
        related: weight of related-or-not beside the choice of the predicate.
        power: "metric", "coverage": an image with k relations weighs k ** (1 - power); 1 counts images, 0 relations.
        beta: "balanced": effective number of samples, (1 - beta ** n) / (1 - beta).
        smoothing: share of the target spread evenly over the predicates.
        targets: a pair with several predicates counts all of them ("soft"), or one that is drawn ("drawn").
        steps: every step of the recurrence counts, or the last one only.
        first_stage: weight of the baseline's own output in a model with context.
        ranking: the relations of an image against its unrelated pairs, besides, see `scenegpi.training.ranking`:
            "pairwise", "listwise" or "none".
        ranking_weight: of that.
    """

    kind: Literal["paper", "released", "balanced", "metric", "coverage"] = "metric"
    entities: float = bounded(4.0, 0.0, 1e4)
    negatives: float = bounded(1.0, 0.0, 1e4)
    related: float = bounded(1.0, 0.0, 1e4)
    power: float = bounded(0.5, 0.0, 1.0)
    beta: float = bounded(0.999, 0.0, 0.999999)
    smoothing: float = bounded(0.0, 0.0, 0.9)
    targets: Literal["soft", "drawn"] = "soft"
    steps: Literal["every", "last"] = "every"
    first_stage: float = bounded(1.0, 0.0, 1e4)
    ranking: Literal["none", "pairwise", "listwise"] = "none"
    ranking_weight: float = bounded(1.0, 0.0, 1e4)


@dataclass(frozen=True)
class OptimConfig:
    """How weights are found: Adam with decoupled weight decay.

    Args:
        batch: images in a batch.
        pairs: in place of `batch`, a batch is as many images as have together about so many pairs; 0 counts images.
        epochs, patience: the most, and how many without a better validation R@50 before it stops.
        keep: the "best" epoch by validation R@50; or the "last": no validation images needed, no early stop.
            A hundred images can't tell epochs apart: with so few, the last of a falling rate is the safer choice.
        first_epochs: how many of the epochs, at the beginning, train the baseline of a model with context.
        learning_rate, warmup, schedule: warmup counts steps; "cosine" ends at a fiftieth of the rate. With
            `first_epochs` it starts anew after them.
        weight_decay, context_decay: of the matrices of the baseline and of the context.
        pair_rate: the context's network over pairs learns at this share of the rate. Where labels are to be
            corrected, it fits too closely long before they are learned.
        clip: largest norm of a gradient; 0 for none.
        average: decay of the running mean of the weights, which is what is validated and kept; 0 for none.
        workers: processes that prepare batches.
    """

    batch: int = bounded(64, 1, 100_000)
    pairs: int = bounded(0, 0, 10**8)
    epochs: int = bounded(10, 1, 100_000)
    patience: int = bounded(3, 1, 100_000)
    keep: Literal["best", "last"] = "best"
    first_epochs: int = bounded(6, 0, 100_000)
    learning_rate: float = bounded(1e-3, 1e-9, 10.0)
    weight_decay: float = bounded(1e-4, 0.0, 10.0)
    context_decay: float = bounded(1e-3, 0.0, 10.0)
    warmup: int = bounded(100, 0, 10**7)
    schedule: Literal["cosine", "constant"] = "cosine"
    pair_rate: float = bounded(1.0, 0.0, 1.0)
    clip: float = bounded(5.0, 0.0, 1e6)
    average: float = bounded(0.998, 0.0, 0.999999)
    workers: int = bounded(0, 0, 64)


@dataclass(frozen=True)
class AugmentConfig:
    """What is done to a training image, afresh each epoch.

    Args:
        mirror: left and right change places in half of the images.
        distractors: boxes of another training image are added, on average so many for each box of the image; they
            are not related to anything.
        drop: in half of the images boxes are left out, at a rate drawn from 0 to this one; what hangs on them goes
            too. The context sees more kinds of neighbourhoods than there are images.
        photos: where images borrow label distributions, those that have their own come so many times an epoch: what is
            borrowed lacks what goes together in a photo.
        given: share of the batches with given labels where the task is "both".
        drop_from: boxes are left out in the epochs that train the context, or from the first ("start").
    """

    mirror: bool = True
    distractors: float = bounded(0.0, 0.0, 10.0)
    drop: float = bounded(0.5, 0.0, 0.95)
    drop_from: Literal["context", "start"] = "context"
    photos: int = bounded(1, 1, 100)
    given: float = bounded(0.5, 0.0, 1.0)


@dataclass(frozen=True)
class SimulateConfig:
    """SGCls without a detector: label distributions by a confusion model, see `scenegpi.training.simulate`."""

    strength: float = bounded(5.0, 0.0, 100.0)
    noise: float = bounded(1.0, 0.0, 100.0)
    frequency: float = bounded(0.5, 0.0, 10.0)


@dataclass(frozen=True)
class TrainConfig:
    """A whole run. `task` "both" trains with labels given in some batches and without in others (`augment.given`).

    `stage` "vision" trains a label predictor on photos, "graph" a model on what that shows, "both" one after the other;
    "layout" is a model without pixels. Images without a photo borrow label distributions (see `training.borrow`).
    `fit` says how the label predictor is trained, where not as usual.
    `start` is a model whose baseline is taken over, instead of training one first. `simulate` makes up label
    distributions for SGCls; the figures are then called simulated. `device` is one of Lightning's accelerators,
    `devices` how many processes of it train together. `calibrate` fits temperatures of the best model to the validation
    images (see `models.calibrate`).
    """

    preset: str = _DEFAULT_PRESET
    task: Literal["predcls", "sgcls", "both"] = "predcls"
    stage: Literal["layout", "vision", "graph", "both"] = "layout"
    seed: int = bounded(0, 0, 2**31 - 1)
    start: str | None = None
    device: Literal["auto", "cpu", "gpu", "cuda", "mps"] = "cpu"
    devices: int = bounded(1, 1, 1024)
    nodes: int = bounded(1, 1, 1024)
    model: ModelConfig = _DEFAULT_MODEL
    data: DataConfig = DataConfig()
    loss: LossConfig = LossConfig()
    optim: OptimConfig = OptimConfig()
    augment: AugmentConfig = AugmentConfig()
    simulate: SimulateConfig | None = None
    fit: FitOptions | None = None
    calibrate: bool = True

    @property
    def scored_task(self) -> Literal["predcls", "sgcls"]:
        """The task of the validation figures; a model that sees and does both is judged by the harder one."""
        harder = self.task == "sgcls" or (self.task == "both" and self.stage != "layout")
        return "sgcls" if harder else "predcls"


def train_config(data: Mapping[str, Any]) -> TrainConfig:
    """From plain values; where `preset` is named, the model starts from it. OptionError that names the field.

    Epochs that are not said: 6 for a baseline, and 4 for the context on top of it. A task that is not said: both for
    a model that sees, else PredCls.
    """
    named = data.get("preset", TrainConfig.preset) if isinstance(data, Mapping) else TrainConfig.preset
    if not isinstance(named, str):
        raise OptionError(f"preset: expected a text, found {type(named).__name__}")
    model, optim = preset(named), OptimConfig()
    if model.context is None:
        optim = replace(optim, epochs=optim.first_epochs, first_epochs=0)
    elif data.get("start") is not None:
        optim = replace(optim, epochs=optim.epochs - optim.first_epochs, first_epochs=0)
    start = replace(TrainConfig(), preset=named, model=model, optim=optim)
    if data.get("stage", start.stage) != start.stage:
        start = replace(start, task="both", model=replace(model, vision=VisionConfig()))
    return override(start, data, "")


def read_toml(path: str | Path) -> dict[str, Any]:
    """The values of a TOML file; DataError with the line where it is none."""
    path = Path(path)
    check_file(path)
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise DataError(path, "too large for a configuration")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(path, f"cannot be read ({reason(error)})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(path, f"is not TOML ({error})") from None
