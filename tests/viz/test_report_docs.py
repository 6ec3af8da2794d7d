"""The page about pictures and the report: its Python and its commands run as they stand."""

from __future__ import annotations

import re
import shlex

from typer.testing import CliRunner

from conftest import ROOT
from scenegpi.cli import app
from scenegpi.data import sample_path
from training.training_cases import data_file, small_config

PAGE = (ROOT / "docs" / "report.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.M | re.S)


def test_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for code in blocks("python"):
        exec(compile(code, "report.md", "exec"), names)
    assert (tmp_path / "scene.png").exists()
    assert names["weights"].nodes.shape == (3,)


def test_commands(tmp_path, monkeypatch):
    from scenegpi.training.run import train

    monkeypatch.chdir(tmp_path)
    train(small_config(data_file(tmp_path)), tmp_path / "RUN")
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    assert len(lines) == 9
    for line in lines:
        # A file of `eval --json` is tested with the report; here its place is taken by the model that it would name.
        known = {"DATA": str(sample_path()), "IMAGE": "1", "OTHER": "3", "eval.json": "vg150-layout"}
        words = [known.get(word, word) for word in shlex.split(line, comments=True)[1:]]
        if "--split" in words:  # the sample has none
            del words[words.index("--split") : words.index("--split") + 2]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception}"
    made = {"scene.png", "qualitative.png", "two.svg", "attention.png", "report.html", "proof.png", "architecture.png"}
    assert made <= {path.name for path in tmp_path.iterdir()}
