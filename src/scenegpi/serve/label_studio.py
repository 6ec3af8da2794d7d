"""Label Studio's ML backend: POST /setup and /predict, and /health; a prediction is a pre-annotation of a task.

Pictures are found by name in the folder that the server was started with; nothing is downloaded.
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from fastapi import APIRouter
from pydantic import BaseModel, Field

from scenegpi import __version__
from scenegpi.data.export.data_sets import NAMES, results
from scenegpi.data.images import ImageFolders
from scenegpi.serve.predicting import Predicting

MOST_TASKS, MOST_CONFIG = 64, 1_000_000
VERSION = f"scenegpi {__version__}"
TAG = re.compile(r"<(RectangleLabels|TextArea|Image)\b([^<>]*)>")
ATTRIBUTE = re.compile(r"""([A-Za-z]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


class Tasks(BaseModel):
    """A request of Label Studio; other fields are ignored."""

    tasks: list[dict[str, Any]] = Field(max_length=MOST_TASKS)
    label_config: str | None = Field(default=None, max_length=MOST_CONFIG)


class LabelStudio:
    """The routes; `folders` hold the pictures."""

    def __init__(self, predicting: Predicting, folders: ImageFolders) -> None:
        self.predicting, self.folders = predicting, folders
        self.router = APIRouter(tags=["label studio"])
        self.router.post("/setup")(self.setup)
        self.router.post("/predict")(self.predict)

    def setup(self) -> dict[str, str]:
        """The version of the model; Label Studio asks for it when a project is connected."""
        return {"model_version": VERSION}

    async def predict(self, request: Tasks) -> dict[str, Any]:
        """Boxes and relations of each task, in the names of the project's interface; none for a missing picture."""
        names, field = interface(request.label_config or "")
        found = []
        for task in request.tasks:
            data = task.get("data")
            address = data.get(field) if isinstance(data, dict) else None
            photo = self.find(address) if isinstance(address, str) else None
            if photo is None:
                found.append({"model_version": VERSION, "score": 0.0, "result": []})
                continue
            graph = await self.predicting.found(photo)
            score = float(graph.scores.mean()) if graph.scores is not None and len(graph) else 0.0
            found.append({"model_version": VERSION, "score": score, "result": results(graph, names)})
        return {"results": found, "model_version": VERSION}

    def find(self, address: str) -> Any:
        """The picture of a URL: its path below the folder, whatever prefix Label Studio adds."""
        path = unquote(re.split(r"[?&]d=", address)[-1].split("&")[0].split("?")[0])
        parts = PurePosixPath(path).parts
        tails = ("/".join(parts[k:]) for k in range(len(parts)) if parts[k] != "/")
        return next((found for tail in tails if (found := self.folders.find(tail))), None)


def interface(config: str) -> tuple[tuple[str, str, str], str]:
    """Names of the tags for labels, image and attributes, and the field of a task that holds the picture."""
    labels, image, text, field = *NAMES, "image"
    for tag, inner in TAG.findall(config):
        given = {key: unescape(one or two) for key, one, two in ATTRIBUTE.findall(inner)}
        if tag == "RectangleLabels":
            labels = given.get("name", labels)
        elif tag == "TextArea":
            text = given.get("name", text)
        else:
            image, field = given.get("name", image), given.get("value", "$image").removeprefix("$")
    return (labels, image, text), field
