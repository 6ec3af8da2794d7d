"""Which shipped model suits an input if the user names no model; and `predict`, which uses it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from scenegpi.data.detector_results import NO_LABEL
from scenegpi.errors import DataError, GraphError
from scenegpi.graph import SceneGraph
from scenegpi.models.shipped import PHOTO, model_vocabulary, shipped_models
from scenegpi.prediction.inputs import boxes_graph, label_list
from scenegpi.prediction.predictor import Predictor
from scenegpi.vocabulary import Vocabulary
from scenegpi.words.label_map import LabelMap

LAYOUT = ("vg150-layout", "vrd-layout")


def default_model(photos: bool, labels: Vocabulary | None = None, scored: bool = False) -> tuple[str, str]:
    """Name of a shipped model and why it was chosen.

    Args:
        photos: whether there are photos.
        labels: the names of given boxes; None if a detector finds them.
        scored: the labels come with scores, so the photo is used as well.
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
    reads = PHOTO if same is None else same.replace("layout", "photo")
    if photos and scored and reads in shipped:
        return reads, f"uses the photo; matches {_matched(labels, reads)} of {total} labels"
    if not known:
        raise DataError("predict", "no model ships in this package; name one with --model")
    best = same or max(known, key=lambda name: known[name])
    return best, f"matches {known[best]} of {total} labels"


def predict(image: Any = None, boxes: Any = None, labels: Any = None, scores: Any = None, **how: Any) -> SceneGraph:
    """The scene graph of one image, by a shipped model that suits it: `predict("photo.jpg")`.

    Arguments as of `Predictor.__call__`; and `model`, a name or a folder, instead of the default.
    """
    model = how.pop("model", None)
    if model is not None and not isinstance(model, str | Path):
        return Predictor(model)(image, boxes, labels, scores, **how)
    if model is None:
        given = None
        if boxes is not None:
            words = label_list(labels) if labels is not None else None
            if words and how.get("names") is None and not any(isinstance(word, str) for word in words):
                raise GraphError("labels: numbers need the model whose labels they are, or names=[...]")
            given = boxes_graph(boxes, Vocabulary(()), labels=words, scores=scores, names=how.get("names"))
        vocabulary = None if given is None else given.vocabulary
        model, _ = default_model(image is not None, vocabulary, given is not None and given.scores is not None)
    return _predictor(str(model), *_files(Path(model)))(image, boxes, labels, scores, **how)


@lru_cache(maxsize=4)
def _predictor(model: str, *_: object) -> Predictor:
    """The predictor of a model; with its files, as another model may take its place."""
    return Predictor(model)


def _files(model: Path) -> Iterator[tuple[str, int, int, int]]:
    """What tells the files of a model's folder, or of an ONNX file, from others; a shipped name has none."""
    for file in sorted(model.iterdir()) if model.is_dir() else [model] if model.is_file() else []:
        info = file.stat()
        yield str(file.absolute()), info.st_mtime_ns, info.st_size, info.st_ino


def _matched(labels: Vocabulary, name: str) -> int:
    """Number of names with a sure match in a model's vocabulary."""
    return len(labels.objects) - len(LabelMap.between(labels, model_vocabulary(name), threshold=2).unmapped)
