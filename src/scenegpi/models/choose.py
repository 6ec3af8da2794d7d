"""Which of the shipped models suits an input, where the user names none."""

from __future__ import annotations

from scenegpi.data.detector_results import NO_LABEL
from scenegpi.errors import DataError
from scenegpi.files import read_object
from scenegpi.models.shipped import find_model, shipped_models
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.label_map import LabelMap

SEEING = "vrd-photo"
LAYOUT = ("vg150-layout", "vrd-layout")


def default_model(photos: bool, labels: Vocabulary | None) -> tuple[str, str]:
    """Name of a shipped model and why it was chosen.

    Args:
        photos: whether there are pixels to look at.
        labels: the names of given boxes; None where a detector finds them.
    """
    shipped = shipped_models()
    layout = [name for name in LAYOUT if name in shipped]
    named = labels is not None and labels.objects != (NO_LABEL,)
    unknown = {name: _unknown(labels, name) for name in layout} if labels is not None and named else {}
    knows_all = next((name for name, count in unknown.items() if count == 0), None)
    if knows_all is not None and (not photos or _same_names(labels, knows_all)):
        return knows_all, "it knows all labels of the boxes"
    if photos and SEEING in shipped:
        return SEEING, "it sees the photo"
    if labels is not None and not named:
        raise DataError("predict", "boxes without labels need a photo and a model that sees; give labels, or --model")
    if unknown:
        best = min(unknown, key=lambda name: unknown[name])
        total = len(labels.objects) if labels is not None else 0
        return best, f"it has a like for {total - unknown[best]} of the {total} labels"
    if layout:
        return layout[0], "by labels and boxes"
    raise DataError("predict", "no model ships in this package; name one with --model")


def model_vocabulary(source: str) -> Vocabulary:
    """The vocabulary of a model, without loading it; by path or by the name of a shipped one."""
    path = find_model(source) / "vocabulary.json"
    try:
        return Vocabulary.from_dict(read_object(path))
    except ValueError as error:
        raise DataError(path, str(error)) from None


def _unknown(labels: Vocabulary | None, name: str) -> int:
    """How many of the names have no sure like in a model's vocabulary."""
    return 0 if labels is None else len(LabelMap.between(labels, model_vocabulary(name), threshold=2).unmapped)


def _same_names(labels: Vocabulary | None, name: str) -> bool:
    return labels is not None and set(labels.objects) <= set(model_vocabulary(name).objects)
