"""Photos, boxes and a small detector for tests of `scenegpi predict`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image
from typer.testing import CliRunner, Result

from scenegpi import SceneGraph, Vocabulary
from scenegpi.cli import app
from scenegpi.data import open_dataset, write_jsonl

SCENE = {"man": [262, 70, 372, 300], "hat": [290, 60, 345, 98], "horse": [170, 165, 470, 440]}
WORDS = Vocabulary(["man", "hat", "horse", "knife"], name="scene")


def call(*words: object) -> Result:
    """Runs the command in this process; `main` would turn the exception into one line and exit code 2."""
    return CliRunner().invoke(app, ["predict", *map(str, words)], catch_exceptions=True)


def fine(*words: object, code: int = 0) -> str:
    result = call(*words)
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result.output


def refused(*words: object) -> str:
    """The message of an error that ends the run."""
    from scenegpi.data import DataError

    result = call(*words)
    assert isinstance(result.exception, DataError), f"{result.output}\n{result.exception!r}"
    return str(result.exception)


def photo(path: Path, width: int = 640, height: int = 480) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(width).integers(0, 255, (height // 16, width // 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((width, height)).save(path)
    return path


def scene(image_id: int | str | None = None, file: str | None = None, **changes: object) -> SceneGraph:
    fields = {"width": 640, "height": 480, "image_id": image_id, "file": file, **changes}
    return SceneGraph(list(SCENE.values()), list(SCENE), WORDS, **fields)


def lines(path: Path, *graphs: SceneGraph) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_jsonl(path, graphs)
    return path


def coco_results(path: Path, *image_ids: int | str) -> Path:
    """A person, a horse, and a knife, which matches no label of VG150, by COCO's own numbers."""
    rows = [
        {"image_id": image_id, "category_id": number, "bbox": [x1, y1, x2 - x1, y2 - y1], "score": score}
        for image_id in image_ids
        for number, (x1, y1, x2, y2), score in (
            (1, SCENE["man"], 0.9),
            (19, SCENE["horse"], 0.8),
            (49, [5, 5, 9, 9], 0.3),
        )
    ]
    path.write_text(json.dumps(rows))
    return path


def predictions(folder: Path) -> list[SceneGraph]:
    return list(open_dataset(folder / "predictions.jsonl"))


def sources(folder: Path) -> list[str]:
    return [json.loads(line)["source"] for line in (folder / "predictions.jsonl").read_text().splitlines()]
