"""Which of the shipped models suits an input, where the user names none."""

from __future__ import annotations

from scenegpi.data.detector_results import NO_LABEL
from scenegpi.errors import DataError
from scenegpi.models.shipped import model_vocabulary, shipped_models
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.label_map import LabelMap

PHOTO = "vg150-photo"
LAYOUT = ("vg150-layout", "vrd-layout")


def default_model(photos: bool, labels: Vocabulary | None = None, scored: bool = False) -> tuple[str, str]:
    """Name of a shipped model and why it was chosen.

    Args:
        photos: whether there are photos.
        labels: the names of given boxes; None where a detector finds them.
        scored: the labels come with scores, so the photo is used, too.
    """
    shipped = shipped_models()
    if labels is None or labels.objects == (NO_LABEL,):
        if not photos:
            raise DataError("predict", "boxes without labels need a photo; give photos, or labels with the boxes")
        if PHOTO not in shipped:
            raise DataError("predict", "no model that uses photos ships in this package; name one with --model")
        return PHOTO, "uses the photo"
    layout = [name for name in LAYOUT if name in shipped]
    known = {name: _matched(labels, name) for name in layout}
    total = len(labels.objects)
    same = next((name for name in layout if set(labels.objects) <= set(model_vocabulary(name).objects)), None)
    if photos and scored and same is None and PHOTO in shipped:
        return PHOTO, f"uses the photo; matches {_matched(labels, PHOTO)} of {total} labels"
    if not known:
        raise DataError("predict", "no model ships in this package; name one with --model")
    best = same or max(known, key=lambda name: known[name])
    return best, f"matches {known[best]} of {total} labels"


def _matched(labels: Vocabulary, name: str) -> int:
    """How many of the names have a sure match in a model's vocabulary."""
    return len(labels.objects) - len(LabelMap.between(labels, model_vocabulary(name), threshold=2).unmapped)
