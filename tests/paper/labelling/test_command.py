"""The command: end to end on a tiny plan, resumed, redrawn, and its errors as one line."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from scenegpi.commands import experiment as command
from scenegpi.errors import DataError
from scenegpi.paper.labelling import experiment
from scenegpi.paper.labelling.experiment import Cell, Plan
from scenegpi.paper.labelling.graphs import Task
from scenegpi.paper.labelling.models import COMPARED
from scenegpi.paper.labelling.training import Recipe

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(command.labelling)


def tiny_plan(seeds: int = 1) -> Plan:
    task, recipe = Task(nodes=4, sets=2), Recipe(steps=4, check_every=2, batch=4)
    cells = [
        Cell(model, samples, seed, task, recipe, test=10, sizes=() if model == "fc" else (3, 5), size_test=5)
        for seed in range(seeds)
        for samples in (10,)
        for model in COMPARED
    ]
    return Plan("tiny", task, tuple(cells))


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "quick_plan", tiny_plan)
    monkeypatch.setenv("COLUMNS", "160")


def test_runs_writes_and_resumes(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    first = CliRunner().invoke(app, ["--quick", "--out", str(out), "--seeds", "2", "--threads", "1"])
    assert first.exit_code == 0, first.output
    for name in ("results.json", "labelling.png", "labelling.svg"):
        assert (out / name).stat().st_size > 0
        assert str(out / name) in first.output
    assert (out / "labelling.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    written = (out / "results.json").read_bytes()
    picture = (out / "labelling.svg").read_bytes()
    results = json.loads(written)
    assert len(results["cells"]) == len(list((out / "cells").iterdir())) == 8
    assert all(str(f"{results['models'][model]['parameters']:,}") in first.output for model in COMPARED)
    assert results["task"] == {"nodes": 4, "sets": 2, "edge_probability": 0.5}
    assert results["recipes"]["fc, n = 4"]["steps"] == 4

    again = CliRunner().invoke(app, ["--quick", "--out", str(out), "--seeds", "2", "--threads", "1"])
    assert again.exit_code == 0
    assert "8 cells finished before" in again.output
    assert (out / "results.json").read_bytes() == written
    assert (out / "labelling.svg").read_bytes() == picture


def test_draws_from_a_results_file_without_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CliRunner().invoke(app, ["--quick", "--out", str(tmp_path / "run")])
    monkeypatch.setattr(experiment, "run_cell", None)
    drawn = CliRunner().invoke(app, ["--draw", str(tmp_path / "run/results.json"), "--out", str(tmp_path / "drawn")])
    assert drawn.exit_code == 0, drawn.output
    for name in ("labelling.png", "labelling.svg"):
        assert (tmp_path / "drawn" / name).read_bytes() == (tmp_path / "run" / name).read_bytes()


def _fails(arguments: list[str]) -> str:
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, DataError), result.output
    assert len(str(result.exception).splitlines()) == 1
    return str(result.exception)


def test_errors_are_one_line(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("{")
    assert str(file) in _fails(["--quick", "--out", str(file)])
    assert str(file) in _fails(["--quick", "--out", str(file / "below")])
    assert "JSON:" in _fails(["--draw", str(file), "--out", str(tmp_path)])
    assert "No such file" in _fails(["--draw", str(tmp_path / "absent.json"), "--out", str(tmp_path / "new")])
    assert not (tmp_path / "new").exists()
    for other in ("[]", "{}", '{"format": 1, "models": {}, "strict_ceiling": 1, "cells": [{}]}'):
        file.write_text(other)
        assert "not a results file" in _fails(["--draw", str(file), "--out", str(tmp_path)])
    file.write_bytes(b"\xff\xfe")
    assert "JSON:" in _fails(["--draw", str(file), "--out", str(tmp_path)])


def test_a_folder_without_permission_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(dir: Path) -> None:
        raise PermissionError(13, "Permission denied", str(dir / "tmp"))

    monkeypatch.setattr(command.tempfile, "TemporaryFile", denied)
    message = _fails(["--quick", "--out", str(tmp_path)])
    assert str(tmp_path) in message
    assert "Permission denied" in message


def test_interruption_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "run_cell", interrupt)
    result = CliRunner().invoke(app, ["--quick", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert "run the same command again to continue" in result.stderr
    assert not (tmp_path / "results.json").exists()


def test_importing_the_command_does_not_import_torch() -> None:
    code = "import sys, scenegpi.commands.experiment; assert not {'torch', 'matplotlib', 'numpy'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
