"""README.md, docs/predict.md and docs/detectors.md: their commands run in the order shown, their Python runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from commands.predict_cases import SCENE, coco_results, photo
from pages import blocks, commands, run_command, why_not
from scenegpi.cli import app
from scenegpi.data import DataError
from scenegpi.graph import SceneGraph
from scenegpi.vision.detect import load_detector


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


@pytest.mark.parametrize("page", ["predict.md", "detectors.md", "README.md"])
def test_the_commands_run(page, desk):
    for line in commands(page):
        if "--detector" in line and not has_detector():
            result = CliRunner().invoke(app, shlex.split(line)[1:])
            assert "pip install" in str(result.exception), line
        elif not why_not(line):
            run_command(line)
    if page == "predict.md":
        assert (desk / "graphs" / "photo.png").exists()
        assert len((desk / "all" / "predictions.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("page", ["predict.md", "detectors.md", "README.md"])
def test_the_python_runs(page, desk):
    names = {"__name__": page}
    for code in blocks(page, "python"):
        exec(compile(code, page, "exec"), names)
    found = names["graph"]
    # The README ends with a photo, which is noise here: nothing is found, and nothing is said.
    assert isinstance(found, SceneGraph) if page == "README.md" else len(found)


def test_the_scores_that_the_readme_shows_are_true():
    code = blocks("README.md", "python")[0]
    given = code[: code.index("for triplet")].split("\n", 1)
    names: dict[str, Any] = {}
    exec("\n".join(given), names)
    told = re.findall(r"(\w+ - \w+ - \w+) \((\d\.\d{3})\)", code)
    found = [str(t).split(" (")[0] for t in names["graph"].triplets()]
    assert [words for words, _ in told] == found
    for (_, score), triplet in zip(told, names["graph"].triplets(), strict=True):
        assert float(score) == pytest.approx(triplet.score, abs=2e-3)


def test_help_and_docs_name_the_floors_in_use():
    from scenegpi.commands import predict
    from scenegpi.prediction.options import FOUND_PLAIN, FOUND_RELATION, GIVEN_RELATION

    floors = f"default {GIVEN_RELATION}, or {FOUND_RELATION} between found boxes (place, ownership: {FOUND_PLAIN})."
    assert floors in Path(predict.__file__).read_text()
    page = (Path(__file__).parents[2] / "docs" / "predict.md").read_text()
    assert (
        f"by default {GIVEN_RELATION}, and between boxes that were found {FOUND_RELATION}, or {FOUND_PLAIN} for"
        in " ".join(page.split())
    )
