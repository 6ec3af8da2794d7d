"""How the photo network is trained, as data."""

from __future__ import annotations

from dataclasses import dataclass

from scenegpi.options import bounded


@dataclass(frozen=True)
class PretrainConfig:
    """Photos with boxes of other labels, complete for them (COCO), that the network sees first.

    Args:
        path, photos: as `open_dataset` takes them; an empty path leaves this step out.
        limit: number of photos, spread evenly over all; 0 for all.
        epochs: passes over them.
    """

    path: str = ""
    photos: str | None = None
    limit: int = bounded(0, 0, 10**9)
    epochs: int = bounded(1, 1, 1000)


@dataclass(frozen=True)
class PhotoFitConfig:
    """Photo network and label head, trained together.

    The photos are dealt into two halves and a network is trained on each: what it says of the other half is held out,
    and is what the graph model learns from. The network that is kept starts from the mean of their weights and goes on
    with all photos.

    Args:
        pretrain: photos to start from; without them, ImageNet's weights.
        epochs: of each half.
        whole_epochs: over all photos, after that.
        size: side of the square photos that it is trained on, in pixels; prediction may read larger ones.
        whole_size: the same, over all photos in the end; by default `size`.
        batch: photos.
        rate, backbone_rate: greatest learning rate of the new layers, and of the backbone's.
        whole_rate: share of them over all photos.
        weight_decay, smoothing: of weights, and of labels.
        finder: weight of the finder's loss beside that of the labels.
        frozen: of the backbone's seven stages, how many stay as they are.
        average: decay of the running mean of the weights, which is what is kept.
    """

    pretrain: PretrainConfig = PretrainConfig()
    epochs: int = bounded(5, 1, 1000)
    whole_epochs: int = bounded(3, 1, 1000)
    size: int = bounded(256, 32, 1024)
    whole_size: int | None = bounded(None, 32, 1024)
    batch: int = bounded(16, 1, 1024)
    rate: float = bounded(1e-3, 1e-7, 1.0)
    backbone_rate: float = bounded(3e-4, 1e-8, 1.0)
    whole_rate: float = bounded(0.5, 1e-3, 1.0)
    weight_decay: float = bounded(0.02, 0.0, 10.0)
    smoothing: float = bounded(0.1, 0.0, 0.9)
    finder: float = bounded(1.0, 0.0, 100.0)
    frozen: int = bounded(3, 0, 7)
    average: float = bounded(0.998, 0.0, 0.999999)
