"""Commands hold the library's warnings back while they run, and no longer."""

from __future__ import annotations

import json
import logging

import pytest
from typer.testing import CliRunner

from scenegpi import SceneGraph, Vocabulary
from scenegpi.cli import app
from scenegpi.commands.terminal import quiet

PETS = Vocabulary(["cat", "dog"], ["near"])
log = logging.getLogger("scenegpi")


@pytest.fixture(params=[logging.NOTSET, logging.DEBUG, logging.CRITICAL])
def level(request):
    before = log.level
    log.setLevel(request.param)
    yield request.param
    log.setLevel(before)


def test_the_level_comes_back_also_after_an_error(level):
    with quiet():
        assert log.level == logging.ERROR

    @quiet()
    def fails() -> None:
        assert log.level == logging.ERROR
        raise RuntimeError

    for _ in range(2):
        with pytest.raises(RuntimeError):
            fails()
        assert log.level == level


@pytest.mark.parametrize("command", ["stats", "validate", "convert", "show", "predict", "predict nothing"])
def test_commands_put_it_back(command, level, tmp_path, caplog):
    graph = SceneGraph([[0, 0, 40, 40], [20, 20, 90, 90]], [0, 1], PETS, [[0, 1, 0]], width=90, height=90, image_id=1)
    good = json.dumps(graph.to_dict())
    file = tmp_path / "x.jsonl"
    file.write_text(f"{good}\n{good.replace('90', '-90')}\n")
    words = {
        "convert": ["data", "convert", str(file), str(tmp_path / "y.jsonl")],
        "predict": ["predict", "--boxes", str(file), "--formats", "none", "--out", str(tmp_path / "out")],
        "predict nothing": ["predict", "--boxes", str(tmp_path / "none.json")],
    }.get(command, ["data", command, str(file)])
    result = CliRunner().invoke(app, words)
    assert log.level == level
    assert caplog.records == []
    if command != "predict nothing":
        assert isinstance(result.exception, SystemExit | None), result.exception
        assert "line 2" in result.output or command == "show"
