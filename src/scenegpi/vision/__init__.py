"""Pixels and boxes -> looks and label distributions; pixels -> boxes.

    photo = open_photo("street.jpg")
    looks = model.looks(photo, graph)              # VisionModel; graph holds the boxes
    dist = model.label_dist(looks, graph)          # (N, C)

Names are loaded when asked for: importing torch takes seconds.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenegpi.vision.cache import photo_looks
    from scenegpi.vision.config import FitOptions, HeadConfig, LookConfig, VisionConfig
    from scenegpi.vision.fit import FittedVision, fit_labels, fit_vision
    from scenegpi.vision.looks import LookExtractor, Looks
    from scenegpi.vision.model import VisionModel
    from scenegpi.vision.photos import as_photo, open_photo, photo_boxes

_HOMES = {
    "FitOptions": "config",
    "FittedVision": "fit",
    "HeadConfig": "config",
    "LookConfig": "config",
    "LookExtractor": "looks",
    "Looks": "looks",
    "VisionConfig": "config",
    "VisionModel": "model",
    "as_photo": "photos",
    "fit_labels": "fit",
    "fit_vision": "fit",
    "open_photo": "photos",
    "photo_boxes": "photos",
    "photo_looks": "cache",
}

__all__ = [
    "FitOptions",
    "FittedVision",
    "HeadConfig",
    "LookConfig",
    "LookExtractor",
    "Looks",
    "VisionConfig",
    "VisionModel",
    "as_photo",
    "fit_labels",
    "fit_vision",
    "open_photo",
    "photo_boxes",
    "photo_looks",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
