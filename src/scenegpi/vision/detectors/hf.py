"""Detectors of transformers (extra `[hf]`): a folder on this machine, or a model of the hub by its name.

Those with labels of their own (`AutoModelForObjectDetection`: DETR, RT-DETR, D-FINE, YOLOS, ...) and those that look
for given names (`AutoModelForZeroShotObjectDetection`: OWL-ViT, OWLv2, Grounding DINO).

A folder is read without the network; a name is fetched by the hub's own client, because the user asked for it. Weights
are safetensors and must be complete; no code of a checkpoint is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from scenegpi.errors import DataError, require
from scenegpi.vision.detect import Detections, finished
from scenegpi.vision.photos import Photo

ORGANIZATION = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}")
OWL, GROUNDING = ("owlvit", "owlv2"), ("grounding-dino", "mm-grounding-dino")
FLOOR = {"owlvit": 0.1, "owlv2": 0.1}
"""Minimum scores for reporting, where they are not 0.25."""
TOKENS = 256
"""Maximum length of a text for Grounding DINO; more labels are split into several texts."""


def check(name: str) -> None:
    """DataError if transformers or the folder is missing; nothing is loaded."""
    require(f"hf:{name}", "hf", "transformers", "scipy")
    if not Path(name).is_dir() and not ORGANIZATION.fullmatch(name):
        raise DataError(f"hf:{name}", "neither a folder nor the ORG/NAME of a model of the hub")


def load(name: str, find: Sequence[str], device: Any = "cpu") -> Closed | Owl | Grounding:
    """A detector in a folder or of the hub; `find` is what an open-vocabulary one looks for."""
    check(name)
    import transformers

    where = f"hf:{name}"
    how: dict[str, Any] = {"local_files_only": Path(name).is_dir(), "trust_remote_code": False}
    try:
        with quiet(transformers.utils.logging):
            config = transformers.AutoConfig.from_pretrained(name, **how)
            if getattr(config, "use_pretrained_backbone", False):
                config.use_pretrained_backbone = False  # its weights are in the checkpoint; nothing else is fetched
            kind = str(config.model_type)
            known = kind in transformers.models.auto.modeling_auto.MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES
            if not known and kind not in OWL + GROUNDING:
                raise DataError(where, f"a {kind!r:.40} model is not a supported detector")
            auto = (
                transformers.AutoModelForObjectDetection if known else transformers.AutoModelForZeroShotObjectDetection
            )
            model, told = auto.from_pretrained(
                name, config=config, use_safetensors=True, output_loading_info=True, **how
            )
            reader = transformers.AutoImageProcessor if known else transformers.AutoProcessor
            processor = reader.from_pretrained(name, **how)
    except DataError:
        raise
    except Exception as error:  # of many kinds: from the hub's client, files, packages that a model needs
        line = next(iter(str(error).splitlines()), type(error).__name__)
        hint = "" if how["local_files_only"] else "; without a network give hf:FOLDER"
        raise DataError(where, f"cannot be loaded ({line:.300}){hint}") from None
    lost = sorted(told["missing_keys"])
    if lost:
        raise DataError(where, f"{len(lost)} of its weights are missing ({lost[0]:.80}, ...)")
    made = Closed if known else Owl if kind in OWL else Grounding
    return made(where, model.to(device).eval(), processor, find, FLOOR.get(kind, 0.25))


@contextmanager
def quiet(log: Any) -> Iterator[None]:
    """Silences progress bars and remarks; real problems raise errors anyway."""
    before, bars = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(before)
        if bars:
            log.enable_progress_bar()


class Closed:
    """A detector with labels of its own.

    Args:
        where: its name in messages.
        model, processor: of transformers.
        find: not used.
        floor: minimum score that is reported.
    """

    iou = 1.0

    def __init__(self, where: str, model: Any, processor: Any, find: Sequence[str], floor: float) -> None:
        self.where, self.model, self.processor, self.floor = where, model, processor, floor
        self.names: Sequence[str] = self._names(find)

    def _names(self, find: Sequence[str]) -> Sequence[str]:
        table = {int(number): str(name) for number, name in self.model.config.id2label.items()}
        return tuple(table.get(k, f"class {k}") for k in range(max(table) + 1))

    @torch.inference_mode()
    def detect(self, photo: Photo) -> Detections:
        """Boxes in pixels of the photo, (H, W, 3) bytes; best first."""
        size = (photo.shape[1], photo.shape[0])
        try:
            parts = list(self.found(Image.fromarray(photo)))
        except (ValueError, RuntimeError, AttributeError, TypeError, IndexError) as error:
            raise DataError(self.where, f"cannot read the photo ({str(error).splitlines()[0]:.200})") from None
        boxes, labels, scores = (np.concatenate([part[k].cpu().numpy() for part in parts]) for k in range(3))
        return finished(boxes, labels, np.clip(scores, 0, 1), self.names, size, self.iou)

    def found(self, image: Image.Image) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Boxes (N, 4), labels and scores (N,), part by part."""
        inputs = self.processor(images=image, return_tensors="pt").to(self.model.device)
        found = self._results(self.processor.post_process_object_detection, inputs, image)
        yield found["boxes"], found["labels"], found["scores"]

    def _results(self, post_process: Any, inputs: Any, image: Image.Image) -> Any:
        sizes = torch.tensor([[image.height, image.width]], device=self.model.device)
        return post_process(self.model(**inputs), threshold=self.floor, target_sizes=sizes)[0]


class Owl(Closed):
    """Looks for every name, asked as one text each."""

    iou = 0.5

    def _names(self, find: Sequence[str]) -> Sequence[str]:
        return tuple(find)

    def found(self, image: Image.Image) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        texts = [[f"a photo of a {name}" for name in self.names]]
        inputs = self.processor(text=texts, images=image, truncation=True, return_tensors="pt").to(self.model.device)
        found = self._results(self.processor.post_process_grounded_object_detection, inputs, image)
        yield found["boxes"], found["labels"], found["scores"]


class Grounding(Closed):
    """Looks for names in one text, "dog. leash. ball."; a box has a name by the best of the name's tokens."""

    iou = 0.7

    def _names(self, find: Sequence[str]) -> Sequence[str]:
        self._stop = self.processor.tokenizer.convert_tokens_to_ids(".")
        return tuple(find)

    def found(self, image: Image.Image) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        scale = torch.tensor([image.width, image.height] * 2, device=self.model.device)
        for first, text in self._texts():
            inputs = self.processor(images=image, text=text, return_tensors="pt").to(self.model.device)
            out = self.model(**inputs)
            score, label = self._by_name(out.logits[0].sigmoid(), inputs["input_ids"][0]).max(1)
            good = score >= self.floor
            centre, size = out.pred_boxes[0][good].split(2, 1)
            yield torch.cat([centre - size / 2, centre + size / 2], 1) * scale, label[good] + first, score[good]

    def _by_name(self, tokens: Tensor, ids: Tensor) -> Tensor:
        """Scores of tokens (Q, T) -> of the names between full stops (Q, L)."""
        stops = (ids == self._stop).nonzero()[:, 0].tolist()
        starts = [1, *(stop + 1 for stop in stops)]  # a token before the first name opens the text
        spans = [tokens[:, low:high] for low, high in zip(starts, stops, strict=False)]
        return torch.stack([span.amax(1) if span.shape[1] else tokens.new_zeros(len(tokens)) for span in spans], 1)

    def _texts(self) -> Iterator[tuple[int, str]]:
        """Texts that are short enough for all names, each with the place of its first."""
        most = min(int(getattr(self.model.config, "max_text_len", TOKENS)), TOKENS) - 2
        first, names, used = 0, list[str](), 0
        for place, name in enumerate(self.names):
            name = " ".join(name.lower().replace(".", " ").split()) or "thing"
            count = len(self.processor.tokenizer(name, add_special_tokens=False)["input_ids"]) + 1
            if names and used + count > most:
                yield first, " ".join(names)
                first, names, used = place, [], 0
            names.append(f"{name}.")
            used += count
        yield first, " ".join(names)
