"""Who finds boxes in a photo that comes without any: the photo network of a model, or a detector of another package."""

from __future__ import annotations

import numpy as np

from scenegpi.errors import DataError
from scenegpi.graph import SceneGraph
from scenegpi.models.shipped import shipped_models
from scenegpi.prediction.defaults import PHOTO
from scenegpi.prediction.model import Model, open_model
from scenegpi.vision.detect import DETECTORS, Detections, Detector, check_detector, load_detector
from scenegpi.vocabulary import Vocabulary

OWN = "finder"
UNION = f"{OWN}+"
FINDERS = {OWN: "150 Visual Genome labels; its weights are in this package", **DETECTORS} | {
    UNION + name: f"the boxes of both, named by the first; needs what {name} needs" for name in DETECTORS
}


def load_finder(name: str | None, model: Model) -> Detector:
    """A finder by its name in FINDERS; OWN, the default, is the model's, or that of the shipped photo model."""
    detector = None if name is None or name == OWN else load_detector(name.removeprefix(UNION))
    if detector is not None and name in DETECTORS:
        return detector
    found = model.finder or open_model(PHOTO, model.backend).finder
    if found is None:
        raise DataError(PHOTO, "has no photo network")
    return found if detector is None else _with(found, detector)


def _with(finder: Detector, other: Detector) -> Detector:
    """A finder that takes another detector's boxes as candidates, too."""
    from scenegpi.vision.find import Finder

    if not isinstance(finder, Finder):
        raise DataError(f"{UNION}NAME", "needs the backend torch")
    return Finder(finder.vision, finder.config, other)


def check_finder(name: str | None) -> None:
    """DataError if there is no such finder, or its package is missing; nothing is loaded."""
    if name is not None and name != OWN:
        if name not in FINDERS:
            raise DataError(name, f"no such detector; there are {', '.join(FINDERS)}")
        check_detector(name.removeprefix(UNION))
    elif PHOTO not in shipped_models():
        raise DataError("predict", "no model that finds boxes ships in this package; give boxes with --boxes FILE")


def found_graph(found: Detections, vocabulary: Vocabulary) -> SceneGraph:
    """The boxes as a graph; in the model's vocabulary, with label distributions, where they are over its labels.

    Scores of such boxes say how sure it is that there is something at all.
    """
    dist = found.label_dist
    if dist is None or tuple(found.names) != vocabulary.objects:
        return found.graph()
    sure = found.scores / np.maximum(dist[np.arange(len(dist)), found.labels], 1e-9)
    return SceneGraph(
        found.boxes,
        found.labels,
        vocabulary,
        scores=np.clip(sure, 0, 1),
        label_dist=dist,
        width=found.size[0],
        height=found.size[1],
    )
