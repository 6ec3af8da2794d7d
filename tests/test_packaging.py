"""The wheel is the package: everything it reads at run time, nothing of its workshop."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import scenegpi
from conftest import ROOT

SOURCE = ROOT / "src" / "scenegpi"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MEGABYTES = 25


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    """Built from a copy, so that nothing an earlier build left in the folder slips in; no network, no isolation."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(SOURCE, folder / "src" / "scenegpi", ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    for name in ("tests", "benchmarks", "docs", "tools"):  # beside the package, as in the repository
        (folder / name).mkdir()
        (folder / name / "__init__.py").touch()
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = (folder / "dist").glob("*.whl")
    return zipfile.ZipFile(file)


@pytest.fixture(scope="module")
def metadata(wheel) -> Message:
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


def test_every_file_of_the_package_is_in_it_and_nothing_else(wheel):
    ours = {
        path.relative_to(SOURCE.parent).as_posix(): path.stat().st_size
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {info.filename: info.file_size for info in wheel.infolist() if ".dist-info/" not in info.filename}
    assert packed == ours


@pytest.mark.parametrize(
    "pattern",
    [
        "scenegpi/py.typed",
        "scenegpi/data/sample.jsonl",
        "scenegpi/models/shipped/*/model.safetensors",
        "scenegpi/models/shipped/*/vocabulary.json",
        "scenegpi/training/recipes/*.toml",
        "scenegpi/words/*.json",
        "scenegpi/words/*.safetensors",
        "scenegpi/viz/report/*.html",
        "scenegpi/viz/report/*.css",
        "scenegpi/viz/report/*.js",
    ],
)
def test_what_is_read_at_run_time_is_there(wheel, pattern):
    """Kinds of files that the code opens by name: the test above would not miss one that the source lost."""
    assert any(Path(name).match(pattern) for name in wheel.namelist())


def test_it_is_small_and_for_every_machine(wheel):
    file = Path(str(wheel.filename))
    assert file.name == f"scenegpi-{scenegpi.__version__}-py3-none-any.whl"
    assert file.stat().st_size < MEGABYTES * 1e6


def test_metadata(metadata):
    assert metadata["Version"] == scenegpi.__version__
    assert metadata["License-Expression"] == "MIT"
    assert metadata["License-File"] == "LICENSE"
    assert metadata.get_all("Project-URL") is None
    assert metadata["Home-page"] is None
    classifiers = metadata.get_all("Classifier") or []
    assert {"Operating System :: OS Independent", "Typing :: Typed"} <= set(classifiers)
    (oldest,) = re.findall(r"\d\.\d+", metadata["Requires-Python"])
    assert f"Programming Language :: Python :: {oldest}" in classifiers


def test_the_command_is_declared(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert "scenegpi = scenegpi.cli:main" in wheel.read(name).decode()


def requirements(lines: list[str]) -> set[str]:
    return {re.split(r"[\[<>=!~; ]", line, maxsplit=1)[0].lower().replace("_", "-") for line in lines}


def test_what_is_declared_is_pinned():
    """`constraints.txt` names the version that was tested of every package that is asked for by name."""
    declared = [
        *PROJECT["dependencies"],
        *(each for name, extra in PROJECT["optional-dependencies"].items() for each in extra if name != "all"),
    ]
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = requirements([line for line in lines if line and not line.startswith("#")])
    assert requirements(declared) <= pinned


def test_all_is_every_extra_that_a_user_may_want():
    extras = PROJECT["optional-dependencies"]
    (named,) = extras["all"]
    assert named == f"scenegpi[{','.join(sorted(extras.keys() - {'all', 'dev', 'docs'}))}]"


def test_extras_that_are_named_exist():
    """Every `pip install '.[extra]'` of the pages and of the messages names an extra that there is."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *SOURCE.rglob("*.py")]
    named = {
        extra.strip()
        for page in pages
        for extras in re.findall(r"(?:\.|scenegpi)\[([a-z, ]+)\]['\" ]", page.read_text(encoding="utf-8"))
        for extra in extras.split(",")
    }
    assert "detect" in named
    assert named <= set(PROJECT["optional-dependencies"])
