"""The pages of docs/ say what is true: their commands run, their Python runs, their links lead somewhere."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from scenegpi.data import sample_path
from scenegpi.rendered import render_scene

PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


def blocks(name: str, *kinds: str) -> list[str]:
    return [text for kind, text in BLOCK.findall((ROOT / "docs" / name).read_text()) if kind in kinds]


def run_page(name: str, folder: Path, **names: object) -> None:
    """Runs a page from top to bottom in a folder: files that it shows are written, commands must succeed."""
    for kind, text in BLOCK.findall((ROOT / "docs" / name).read_text()):
        if kind == "toml":
            first = text.splitlines()[0]
            (folder / first.removeprefix("# ")).write_text(text)
        for line in text.splitlines() if kind == "bash" else ():
            for word, value in names.items():
                line = line.replace(word, str(value))
            words = shlex.split(line, comments=True)
            assert words[0] == "scenegpi"
            command = [sys.executable, "-c", "from scenegpi.cli import main; main()", *words[1:]]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_the_page_about_training_runs(tmp_path):
    run_page("train.md", tmp_path)
    assert (tmp_path / "photos" / "model" / "model.safetensors").is_file()


def test_the_commands_for_data_sets_run(tmp_path):
    run_page("data.md", tmp_path, DATA=sample_path())
    assert {path.name for path in tmp_path.iterdir()} >= {"scene.png", "graphs.jsonl", "coco.json"}


def test_the_python_for_data_sets_runs():
    (code,) = blocks("data.md", "python")
    exec(compile(code.replace("DATA", str(sample_path())), "data.md", "exec"), {})


@pytest.mark.parametrize("page", ["models.md", "calibration.md"])
def test_the_python_for_models_runs(page):
    pytest.importorskip("torch")
    (code,) = blocks(page, "python")
    exec(compile(code, page, "exec"), {})


def test_the_readme_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    render_scene(0, 0)[0].save("photo.jpg")
    names: dict[str, object] = {}
    for kind, code in BLOCK.findall((ROOT / "README.md").read_text()):
        if kind == "python":
            exec(compile(code, "README.md", "exec"), names)
    assert names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_shown_exist(page):
    """Every `scenegpi ...` line of a bash block names a command and options that there are."""
    for kind, text in BLOCK.findall(page.read_text()):
        if kind != "bash":
            continue
        for line in text.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] != ["scenegpi"]:
                continue
            command = [word for word in words[1:3] if word.isalpha() and word.islower()]
            group = 2 if command[0] in ("data", "experiment", "figure", "words") else 1
            call = [sys.executable, "-c", "from scenegpi.cli import main; main()", *command[:group], "--help"]
            done = subprocess.run(call, capture_output=True, text=True, env={"COLUMNS": "200", "PATH": ""})
            assert done.returncode == 0, line
            for option in (word.partition("=")[0] for word in words if word.startswith("--")):
                assert option in done.stdout, f"{line}: no option {option}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
