"""What finds boxes in a photo that comes without boxes: the photo network of a model, or another detector.

finder                  the model's own, or that of the shipped photo model; the default, with SECOND where its package
                        is installed
yolov4-tiny, ...        a detector whose weights are in a package (`vision.detect.DETECTORS`)
FILE.onnx               a detector in an ONNX file (`onnx.detector`)
hf:FOLDER, hf:ORG/NAME  a detector of transformers (`vision.detectors.hf`)
finder+NAME             the first and any of the others, their evidence combined
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenegpi.data.class_names import in_order, read_names_file
from scenegpi.data.coco_names import COCO_PLACES
from scenegpi.errors import DataError
from scenegpi.files import check_file
from scenegpi.graph import SceneGraph
from scenegpi.models.shipped import PHOTO, model_vocabulary, shipped_models
from scenegpi.prediction.model import Backend, Model, open_model
from scenegpi.vision.detect import DETECTORS, Detections, Detector, check_detector, is_installed, load_detector
from scenegpi.vocabulary import Vocabulary

OWN = "finder"
UNION = f"{OWN}+"
SECOND = "yolov4-tiny"
"""Combined by default with the finder of the shipped photo model, for its tighter boxes."""
HUB = "hf:"
FINDERS = {OWN: "Visual Genome's labels and everyday names; its weights are in this package", **DETECTORS} | {
    "FILE.onnx": "a detector in an ONNX file: RT-DETR, D-FINE, DEIM, YOLOX, YOLO",
    f"{HUB}FOLDER": f"a detector of transformers in a folder, or {HUB}ORG/NAME of its hub",
    f"{UNION}NAME": "the first and any of the others, their evidence combined",
}


@dataclass(frozen=True)
class FinderSpec:
    """A detector by its name, and its settings.

    Args:
        name: see FINDERS.
        names: labels of a FILE.onnx by number, if they are not in the file.
        find: what an open-vocabulary detector looks for; by default the labels of the model.
    """

    name: str = OWN
    names: tuple[str, ...] | None = None
    find: tuple[str, ...] | None = None

    @classmethod
    def of(cls, name: str | None, names: str | None = None, find: str | None = None) -> FinderSpec | None:
        """From the command line's words: `names` a file, or "coco"; `find` words separated by commas."""
        words = tuple(dict.fromkeys(word for part in (find or "").split(",") if (word := " ".join(part.split()))))
        if find is not None and not words:
            raise DataError("--find", "expected names separated by commas: dog, leash, ball")
        table: Mapping[int, str] = {}
        if names is not None:
            known = names == "coco" and not Path(names).exists()
            table = COCO_PLACES if known else read_names_file(Path(names))
        if name is None and (names is not None or find is not None):
            raise DataError("--find" if find else "--names", "needs a detector that takes it: --detector NAME")
        labels = in_order(names or "", table)
        return None if name is None else cls(name, labels or None, words or None)

    @classmethod
    def named(cls, finder: FinderSpec | str | None) -> FinderSpec:
        """A finder by its name; None means our own."""
        return finder if isinstance(finder, FinderSpec) else cls(finder or OWN)

    @property
    def other(self) -> str | None:
        """The detector that our finder is combined with, or the detector alone."""
        name = self.name.removeprefix(UNION)
        return None if name == OWN else name

    @property
    def file(self) -> Path | None:
        """The path of a FILE.onnx."""
        return Path(self.other) if self.other and self.other.lower().endswith(".onnx") else None

    def settings(self) -> Any:
        """What the detector's answers depend on besides its weights."""
        told = {key: list(value) for key in ("names", "find") if (value := getattr(self, key))}
        return {"name": self.name, **told} if told else self.name


def load_finder(finder: FinderSpec | str | None, model: Model, device: Any = "cpu") -> Detector:
    """A finder by its name; by default the model's own, or that of the shipped photo model, with SECOND if installed.

    SECOND is not added by default to a finder with other labels than the shipped one's, nor without torch.
    """
    spec = FinderSpec.named(finder)
    detector = None if spec.other is None else _other(spec, model, device)
    if detector is not None and not spec.name.startswith(UNION):
        return detector
    found = model.finder or _shipped(model, device)
    if found is None:
        raise DataError(PHOTO, "has no photo network")
    if finder is None and default_finder(model.backend) != OWN and _speaks_everyday(found):
        detector = load_detector(SECOND)
    return found if detector is None else _with(found, detector, spec.other or SECOND)


def default_finder(backend: Backend | None = None) -> str:
    """The default finder; a combination of two needs torch."""
    return UNION + SECOND if backend != "onnx" and is_installed(SECOND) else OWN


def _speaks_everyday(finder: Detector) -> bool:
    """Whether a finder has the labels of the shipped photo model, to whose evidence the combination was fitted."""
    from scenegpi.vision.find import Finder

    if not isinstance(finder, Finder):
        return False
    labels = finder.vision.labels.objects
    return labels == model_vocabulary(PHOTO).objects[: len(labels)]


def _shipped(model: Model, device: Any) -> Detector | None:
    """The finder of the shipped photo model; for a model of just its labels, without everyday names."""
    photo = open_model(PHOTO, model.backend, device)
    plain = photo.labels_only()
    return (plain if plain.vocabulary.objects == model.vocabulary.objects else photo).finder


def _other(spec: FinderSpec, model: Model, device: Any) -> Detector:
    if spec.file is not None:
        from scenegpi.onnx.detector import OnnxDetector

        return OnnxDetector(spec.file, spec.names)
    name = spec.other or ""
    if name.startswith(HUB):
        from scenegpi.vision.detectors.hf import load

        return load(name.removeprefix(HUB), spec.find or model.vocabulary.objects, device)
    return load_detector(name)


def _with(finder: Detector, other: Detector, name: str) -> Detector:
    """A finder that combines its evidence with that of another detector."""
    from scenegpi.vision.combine import Combined
    from scenegpi.vision.find import Finder

    if not isinstance(finder, Finder):
        raise DataError(f"{UNION}NAME", "needs the backend torch")
    return Combined(finder, other, name)


def check_finder(finder: FinderSpec | str | None) -> None:
    """DataError if there is no such finder, or its file or package is missing; nothing is loaded."""
    spec = FinderSpec.named(finder)
    if (spec.other is None or spec.name.startswith(UNION)) and PHOTO not in shipped_models():
        raise DataError("predict", "this package contains no model that finds boxes; give boxes with --boxes FILE")
    if spec.names is not None and spec.file is None:
        raise DataError("--names", f"{spec.name} has its own names; only FILE.onnx takes --names")
    hub = (spec.other or "").startswith(HUB)
    if spec.find is not None and not hub:
        raise DataError("--find", f"{spec.name} finds only its own labels; open-vocabulary detectors are {HUB}NAME")
    if spec.file is not None:
        check_file(spec.file)
    elif hub:
        from scenegpi.vision.detectors.hf import check

        check((spec.other or "").removeprefix(HUB))
    elif spec.other is not None:
        if spec.other not in DETECTORS:
            raise DataError(spec.name, f"no such detector; known: {', '.join(FINDERS)}")
        check_detector(spec.other)


def found_graph(found: Detections, vocabulary: Vocabulary) -> SceneGraph:
    """The boxes as a graph; in the model's vocabulary, with label distributions, if they are over its labels.

    Scores of such boxes are the chance that there is an object at all; None if the detector does not give it.
    """
    if found.label_dist is None or tuple(found.names) != vocabulary.objects:
        return found.graph()
    width, height = found.size
    more: dict[str, Any] = {"scores": found.sure, "label_dist": found.label_dist, "width": width, "height": height}
    return SceneGraph(found.boxes, found.labels, vocabulary, **more)
