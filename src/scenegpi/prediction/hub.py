"""Predictors in Hugging Face's libraries (extra `[hf]`).

    from scenegpi.prediction.hub import HubPredictor

    HubPredictor("vg150-photo").save_pretrained("folder")       # weights, settings, a card that the hub understands
    predictor = HubPredictor.from_pretrained("folder")          # or a name on the hub, which is then fetched

    from transformers import pipeline

    pipe = pipeline("scene-graph", model=SceneGraphModel.from_pretrained("vg150-photo"))
    pipe("photo.jpg")           # {"objects": [{"label", "score", "box"}], "relations": [{"subject", "predicate", ...}]}

A folder that is given is read from disk; no network is used.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCardData, ModelHubMixin, snapshot_download
from transformers import Pipeline, PretrainedConfig, PreTrainedModel
from transformers.pipelines import PIPELINE_REGISTRY

from scenegpi.errors import DataError
from scenegpi.models.checkpoint import save_model
from scenegpi.models.shipped import find_model
from scenegpi.prediction.model import Backend
from scenegpi.prediction.options import PredictOptions
from scenegpi.prediction.predictor import Predictor

TASK = "scene-graph"
TAGS = [TASK, "scene-graph-generation", "visual-relationship-detection"]
FILES = ("model.safetensors", "config.json", "vocabulary.json", "metrics.json", "README.md", "trained_on.bin")
OWN = FILES[:3]
FETCH = ("revision", "cache_dir", "force_download", "local_files_only", "token")


class HubPredictor(Predictor, ModelHubMixin):
    """A Predictor that is saved, loaded and shared like a model of the hub; arguments as of `Predictor`."""

    def __init__(
        self,
        model: Any = "vg150-photo",
        finder: Any = None,
        options: PredictOptions | None = None,
        device: Any = "cpu",
        backend: Backend | None = None,
    ) -> None:
        super().__init__(model, finder, options, device, backend)
        named = isinstance(model, str | Path) and Path(model).suffix != ".onnx"
        self.folder = find_model(model) if named else None

    def save_pretrained(self, save_directory: str | Path, **options: Any) -> str | None:
        """Writes the model's folder; an existing folder with anything but a model in it is refused."""
        folder = Path(save_directory)
        if folder.is_dir() and any(folder.iterdir()) and not all((folder / name).is_file() for name in OWN):
            raise DataError(folder, "exists already and is not a model folder")
        if self.folder is not None and folder.resolve() == self.folder.resolve():
            raise DataError(folder, "is the folder that the model was read from")
        saved: str | None = super().save_pretrained(folder, **options)
        return saved

    def _save_pretrained(self, save_directory: Path) -> None:
        if self.folder is None:
            save_model(self.model, save_directory, overwrite=True)  # type: ignore[arg-type]
        else:
            for name in FILES:
                if (self.folder / name).is_file():
                    shutil.copyfile(self.folder / name, save_directory / name)
        card = save_directory / "README.md"
        text = card.read_text(encoding="utf-8")
        if not text.startswith("---\n"):
            header = ModelCardData(library_name="scenegpi", tags=TAGS).to_yaml()
            card.write_text(f"---\n{header}\n---\n\n{text}", encoding="utf-8")

    @classmethod
    def from_pretrained(cls, name: str | Path, **options: Any) -> HubPredictor:
        """A folder, or ORG/NAME, which the hub's client fetches or has in its cache; its options, and `Predictor`'s."""
        how = {key: options.pop(key) for key in FETCH if key in options}
        if not Path(name).is_dir():
            try:
                name = snapshot_download(str(name), allow_patterns=list(FILES), **how)
            except Exception as error:  # the hub's client raises many kinds
                said = " ".join(str(error).split())
                raise DataError(name, f"is not a folder, and cannot be fetched from the hub ({said:.200})") from None
        found: HubPredictor = super().from_pretrained(name, **options)
        return found

    @classmethod
    def _from_pretrained(cls, *, model_id: str, **options: Any) -> HubPredictor:
        # "model" is a key of config.json, which `load_model` reads itself.
        return cls(model_id, **{key: value for key, value in options.items() if key not in (*FETCH, "model")})


class SceneGraphConfig(PretrainedConfig):
    """The settings that transformers requires of a model; ours are in the predictor's folder."""

    model_type = "scenegpi"


class SceneGraphModel(PreTrainedModel):
    """A Predictor where transformers expects a model."""

    config_class = SceneGraphConfig

    def __init__(self, predictor: Predictor) -> None:
        super().__init__(SceneGraphConfig())
        self.predictor, self.network = (
            predictor,
            predictor.model,
        )  # so that this model's weights are those of the predictor

    @classmethod
    def from_pretrained(cls, name: str | Path, **options: Any) -> SceneGraphModel:
        """A name that ships, or a folder."""
        return cls(Predictor(name, **options))


class SceneGraphPipeline(Pipeline):
    """Photos in, objects and relations out, best first; options are those of `Predictor.__call__`."""

    def _sanitize_parameters(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        return {}, options, {}

    def preprocess(self, image: Any) -> dict[str, Any]:
        return {"image": image}

    def _forward(self, inputs: dict[str, Any], **options: Any) -> dict[str, Any]:
        return {"graph": self.model.predictor(inputs["image"], **options)}

    def postprocess(self, outputs: dict[str, Any]) -> dict[str, Any]:
        graph = outputs["graph"]
        sides = ("xmin", "ymin", "xmax", "ymax")
        objects = [
            {"label": each.label, "score": each.score, "box": dict(zip(sides, each.box, strict=True))} for each in graph
        ]
        return {"objects": objects, "relations": [t._asdict() for t in graph.triplets()]}


PIPELINE_REGISTRY.register_pipeline(TASK, pipeline_class=SceneGraphPipeline, pt_model=SceneGraphModel)
