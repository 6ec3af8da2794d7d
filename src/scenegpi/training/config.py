"""All settings of a training run, as data: from defaults, a preset, and a TOML file.

    preset = "gpi-feature-attention"
    task = "predcls"
    epochs = 10                   # in all, divided between the baseline and the context
    [data]
    path = "vg150"
    validation = 1291
    [model.network]
    hidden = 256
    [optim]                       # optim, loss and augment hold for both stages,
    batch = 64
    [context.optim]               # or for one of them
    learning_rate = 2e-3

A model with context is trained in two stages: its baseline first; then the context, with the baseline frozen. An
unknown key is an error that names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from scenegpi.models.calibration import Calibrations
from scenegpi.models.config import ModelConfig
from scenegpi.models.presets import preset
from scenegpi.options import bounded, override

_DEFAULT_PRESET = "gpi-feature-attention"
START = "start_digest"
"""In a run's config.json, the digest of the model that it starts from, which is no setting."""
_CONSTANT: dict[str, dict[str, Any]] = {
    "fit": {"weight_decay": 0.01},
    "photo": {"rate": 1e-3, "backbone_rate": 3e-4, "weight_decay": 0.02, "keep": False, "only": False}
    | dict.fromkeys(("finder", "look", "names"), 1.0),
}
"""Settings of earlier runs that are constants now."""


@dataclass(frozen=True)
class MoreRelations:
    """Another annotation of relations, which is also counted (`scenegpi.training.more_relations`).

    Args:
        path: as `open_dataset` takes it; an empty one leaves it out.
        weight: the weight of each of its relations.
        only: train nothing, only add the relations to the counts of the model that the run starts from.
    """

    path: str = ""
    weight: float = bounded(1.0, 0.0, 1000.0)
    only: bool = False


@dataclass(frozen=True)
class DataConfig:
    """The images.

    Args:
        path, format: as `open_dataset` takes them.
        photos: folder of the photos, for models that use them; by default those of the data set.
        cache: folder where box features are kept; by default in the run.
        validation: number of training images to set aside. By default the data set's own validation images, or else one
            training image in twenty; 0 for none.
        limit: train on at most this many images, spread evenly over all; 0 for all.
        distributions: npz file of another system's label and pair distributions.
        words: file of word vectors, for models that read them; by default the small table in the package.
        more: relations of another annotation, added to the counts.
    """

    path: str = ""
    format: str | None = None
    photos: str | None = None
    cache: str | None = None
    validation: int | None = bounded(None, 0, 10**9)
    limit: int = bounded(0, 0, 10**9)
    distributions: str | None = None
    words: str | None = None
    more: MoreRelations = MoreRelations()


@dataclass(frozen=True)
class LossConfig:
    """The loss by name, and the weights of an entity's label and of a pair without a relation (negatives); see
    `scenegpi.training.losses`.
    """

    kind: Literal["paper", "released", "metric"] = "metric"
    entities: float = bounded(4.0, 0.0, 1e4)
    negatives: float = bounded(1.0, 0.0, 1e4)


@dataclass(frozen=True)
class OptimConfig:
    """The optimizer: Adam with decoupled weight decay; the learning rate falls to a fiftieth along a cosine.

    Args:
        batch: images per batch.
        learning_rate, warmup: warmup counts steps.
        pair_rate: the context's network over pairs learns at this fraction of the rate: where labels are corrected, it
            would overfit long before they are learned.
        average: decay of the running mean of the weights, which is what is validated and kept; 0 for none.
        keep: the "best" epoch by validation R@50; or the "last": no validation images needed, no early stop. A hundred
            images can't tell epochs apart: with so few, the last one of a decaying rate is the safer choice.
        patience: stop after this many epochs without a better validation R@50.
    """

    batch: int = bounded(64, 1, 100_000)
    learning_rate: float = bounded(1e-3, 1e-9, 10.0)
    warmup: int = bounded(100, 0, 10**7)
    pair_rate: float = bounded(1.0, 0.0, 1.0)
    average: float = bounded(0.998, 0.0, 0.999999)
    keep: Literal["best", "last"] = "best"
    patience: int = bounded(3, 1, 100_000)


@dataclass(frozen=True)
class AugmentConfig:
    """How training images are augmented, anew each epoch.

    Args:
        mirror: mirror half of the images.
        drop: in half of the images leave out boxes and their relations, at a rate drawn from 0 to this one: the
            context sees more neighbourhoods than there are images.
        photos: where other images resample their label distributions, those with their own come this many times per
            epoch: resampled ones don't show which errors occur together in a photo.
        given: fraction of the batches with given labels if the task is "both".
    """

    mirror: bool = True
    drop: float = bounded(0.0, 0.0, 0.95)
    photos: int = bounded(1, 1, 100)
    given: float = bounded(0.5, 0.0, 1.0)


@dataclass(frozen=True)
class StageConfig:
    """How the baseline, or the context, is trained; `epochs` is the maximum."""

    epochs: int = bounded(6, 1, 100_000)
    loss: LossConfig = LossConfig()
    optim: OptimConfig = OptimConfig()
    augment: AugmentConfig = AugmentConfig()


@dataclass(frozen=True)
class FitOptions:
    """How the label head is trained on a frozen backbone: see `scenegpi.training.label_head`.

    A batch is a number of boxes; the photos are divided into `folds` parts.
    """

    epochs: int = bounded(20, 1, 1000)
    batch: int = bounded(256, 1, 65536)
    rate: float = bounded(2e-3, 1e-6, 1.0)
    folds: int = bounded(5, 2, 100)


@dataclass(frozen=True)
class OtherConfig:
    """Another annotation of photos, complete for its own labels (COCO), that the photo network also learns from.

    Args:
        path, photos: as `open_dataset` takes them; an empty path leaves it out.
        same: JSON file: image id here -> image id there, of photos that both annotations have.
        limit: number of its photos, spread evenly over all; 0 for all.
        repeat: how often the run's own photos come in each pass over the others.
        taught: number of its photos, spread evenly over those that are not the run's own, in which things that it does
            not list are learned from what the start model finds (`scenegpi.training.taught`).
    """

    path: str = ""
    photos: str | None = None
    same: str | None = None
    limit: int = bounded(0, 0, 10**9)
    repeat: int = bounded(1, 1, 1000)
    taught: int = bounded(0, 0, 10**9)


@dataclass(frozen=True)
class PhotoFitConfig:
    """How the photo network is trained with its label head: see `scenegpi.training.photo_network`.

    Args:
        other: more photos for every batch.
        continued: train the network of the start model further, on all photos; its graph model is kept.
        before: fraction of the old weights in the mean of old and new ones, which is kept.
        epochs: over each half of the photos.
        whole_epochs: over all photos, after that.
        sizes: sides of the square training photos in pixels, multiples of 32; each batch has one of them.
        batch: photos per batch.
        whole_rate: fraction of the learning rate in the passes over all photos.
        frozen: number of the backbone's seven stages that are not trained.
        average: decay of the running mean of the weights, which is what is kept.
    """

    other: OtherConfig = OtherConfig()
    continued: bool = False
    before: float = bounded(0.0, 0.0, 1.0)
    epochs: int = bounded(5, 1, 1000)
    whole_epochs: float = bounded(3.0, 0.1, 1000.0)
    sizes: tuple[int, ...] = (256, 320)
    batch: int = bounded(16, 1, 1024)
    whole_rate: float = bounded(0.5, 1e-3, 1.0)
    frozen: int = bounded(3, 0, 7)
    average: float = bounded(0.998, 0.0, 0.999999)


@dataclass(frozen=True)
class MachineConfig:
    """Where every stage is trained.

    Args:
        device, devices, nodes: one of Lightning's accelerators, processes per machine, machines.
        precision: "32-true", or "bf16-mixed" or "16-mixed" for autocast.
        strategy: how processes share the work: "auto", or one of Lightning's DDP strategies by name. Every process
            needs all weights, for their running mean and for the state on disk: those that shard them (FSDP,
            DeepSpeed) are refused.
    """

    device: Literal["auto", "cpu", "gpu", "cuda", "mps"] = "cpu"
    devices: int = bounded(1, 1, 1024)
    nodes: int = bounded(1, 1, 1024)
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"
    strategy: str = "auto"

    def __post_init__(self) -> None:
        if self.strategy != "auto" and not self.strategy.startswith("ddp"):
            raise ValueError(f"strategy: {self.strategy!r:.40}, expected auto or one of Lightning's ddp strategies")


@dataclass(frozen=True)
class TrainConfig(MachineConfig):
    """A whole run: the label predictor if `model.vision` is set, then the baseline, then the context if any.

    A compared system is trained in place of the baseline, or of the context (`model.on_baseline`).

    Args:
        preset: the settings that `model` starts from.
        task: labels are given ("predcls"), found ("sgcls"), or given in some batches and found in others ("both").
        seed: random seed.
        start: a run, or a model, whose baseline is used instead of training one; a run's label predictor too.
        model, data: the model, and the training data.
        fit: how the label head is trained, if the backbone is frozen.
        photo: how the photo network is trained with its label head, if the model has one.
        baseline, context: how each stage is trained.
        calibration: the finished model's; by default it is fitted to the validation images.
        half: the finished model is stored in half precision.
    """

    preset: str = _DEFAULT_PRESET
    task: Literal["predcls", "sgcls", "both"] = "predcls"
    seed: int = bounded(0, 0, 2**31 - 1)
    start: str | None = None
    model: ModelConfig = field(default_factory=lambda: preset(_DEFAULT_PRESET))
    data: DataConfig = DataConfig()
    fit: FitOptions = FitOptions()
    photo: PhotoFitConfig = PhotoFitConfig()
    baseline: StageConfig = StageConfig()
    context: StageConfig = StageConfig(epochs=4, augment=AugmentConfig(drop=0.5))
    calibration: Calibrations | None = None
    half: bool = False

    @property
    def scored_task(self) -> Literal["predcls", "sgcls"]:
        """The task of the validation figures; a model that uses photos and does both is scored on the harder one."""
        harder = self.task == "sgcls" or (self.task == "both" and self.model.vision is not None)
        return "sgcls" if harder else "predcls"

    @property
    def stage(self) -> StageConfig:
        """The stage that the finished model comes from."""
        return self.context if self.model.two_stages else self.baseline


def stored_config(values: Mapping[str, Any]) -> TrainConfig:
    """From a run's config.json, which may hold settings that are now constants; OptionError that names the field."""
    kept = {key: value for key, value in values.items() if key != START and (key != "simulate" or value is not None)}
    for table, constants in _CONSTANT.items():
        if isinstance(kept.get(table), dict):
            kept[table] = {key: value for key, value in kept[table].items() if value != constants.get(key, ...)}
    return override(TrainConfig(), kept, "")
