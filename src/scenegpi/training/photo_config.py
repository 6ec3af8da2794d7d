"""How the photo network is trained, as data."""

from __future__ import annotations

from dataclasses import dataclass

from scenegpi.options import bounded


@dataclass(frozen=True)
class OtherConfig:
    """Another annotation of photos, complete for its own labels (COCO), that the network learns from as well.

    Args:
        path, photos: as `open_dataset` takes them; an empty path leaves it out.
        same: JSON file: image id here -> image id there, of photos that both annotations have.
        limit: number of its photos, spread evenly over all; 0 for all.
        repeat: number of times that the own photos come in each pass over those of the other.
    """

    path: str = ""
    photos: str | None = None
    same: str | None = None
    limit: int = bounded(0, 0, 10**9)
    repeat: int = bounded(1, 1, 1000)


@dataclass(frozen=True)
class PhotoFitConfig:
    """Photo network and label head, trained together.

    The photos are dealt into two halves and a network is trained on each: what it says of the other half is held out,
    and is what the graph model learns from. The network that is kept starts from the mean of their weights and goes on
    with all photos.

    Args:
        other: more photos, in every batch.
        only: only the eyes of the model that the run starts from are trained, from where they are; its graph stays.
        epochs: of each half.
        whole_epochs: over all photos, after that.
        sizes: sides of the square photos that it is trained on, in pixels, multiples of 32; a batch has one of them.
        batch: photos.
        rate, backbone_rate: greatest learning rate of the new layers, and of the backbone's.
        whole_rate: share of them over all photos.
        weight_decay: of the weights.
        finder, look, names: weights of the losses of finder, second look and label head; what has none is not trained.
        frozen: of the backbone's seven stages, how many stay as they are.
        keep: where all of them do, its maps of the photos are computed once and kept beside the training's state (half
            precision; 0.3 MB for a photo of 320 pixels): each photo is then the same in every pass.
        average: decay of the running mean of the weights, which is what is kept.
    """

    other: OtherConfig = OtherConfig()
    only: bool = False
    epochs: int = bounded(5, 1, 1000)
    whole_epochs: float = bounded(3.0, 0.1, 1000.0)
    sizes: tuple[int, ...] = (256, 320)
    batch: int = bounded(16, 1, 1024)
    rate: float = bounded(1e-3, 1e-7, 1.0)
    backbone_rate: float = bounded(3e-4, 1e-8, 1.0)
    whole_rate: float = bounded(0.5, 1e-3, 1.0)
    weight_decay: float = bounded(0.02, 0.0, 10.0)
    finder: float = bounded(1.0, 0.0, 100.0)
    look: float = bounded(1.0, 0.0, 100.0)
    names: float = bounded(1.0, 0.0, 100.0)
    frozen: int = bounded(3, 0, 7)
    keep: bool = False
    average: float = bounded(0.998, 0.0, 0.999999)

    def __post_init__(self) -> None:
        if self.keep and (self.frozen < 7 or len(set(self.sizes)) > 1):
            raise ValueError("keep: needs a frozen backbone (frozen = 7) and one size")
