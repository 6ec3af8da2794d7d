"""docs/predict.md and docs/detectors.md: their commands run in the order shown, their Python runs."""

from __future__ import annotations

import re
import shlex

import pytest
from typer.testing import CliRunner

from commands.predict_cases import SCENE, coco_results, photo
from conftest import ROOT
from scenegpi.cli import app
from scenegpi.data import DataError
from scenegpi.vision.detect import load_detector

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


def blocks(page: str, kind: str) -> list[str]:
    return [text for name, text in BLOCK.findall((ROOT / "docs" / page).read_text()) if name == kind]


def has_detector() -> bool:
    try:
        load_detector()
    except DataError:
        return False
    return True


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with what the pages speak of: photo.jpg, photos, boxes.json, labels."""
    monkeypatch.chdir(tmp_path)
    photo(tmp_path / "photo.jpg")
    (tmp_path / "labels").mkdir()
    for name in ("a", "b"):
        photo(tmp_path / "photos" / f"{name}.jpg")
        rows = [(0, SCENE["man"]), (17, SCENE["horse"])]
        lines = [
            f"{c} {(x1 + x2) / 1280} {(y1 + y2) / 960} {(x2 - x1) / 640} {(y2 - y1) / 480}"
            for c, (x1, y1, x2, y2) in rows
        ]
        (tmp_path / "labels" / f"{name}.txt").write_text("\n".join(lines))
    coco_results(tmp_path / "boxes.json", "photo")
    return tmp_path


@pytest.mark.parametrize("page", ["predict.md", "detectors.md"])
def test_the_commands_run(page, desk):
    for block in blocks(page, "bash"):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] != ["scenegpi"]:
                continue
            result = CliRunner().invoke(app, words[1:])
            if "--detector" in words and not has_detector():
                assert "pip install" in str(result.exception), line
            else:
                assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
    if page == "predict.md":
        assert (desk / "graphs" / "photo.png").exists()
        assert len((desk / "all" / "predictions.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("page", ["predict.md", "detectors.md"])
def test_the_python_runs(page, desk):
    for code in blocks(page, "python"):
        exec(compile(code, page, "exec"), {"__name__": page})
