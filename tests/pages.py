"""The code of the pages (docs/**/*.md, README.md), and running it: commands in this process, Python block after block."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from typer.testing import CliRunner

from conftest import ROOT
from scenegpi.cli import app

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)
NOT_RUN = {
    r"make (demo|test)$": "sets up an environment; test_cli.py runs the demo, and this is the test",
    r"pip install": "installs; the environment of the tests is there already",
    r"scenegpi predict .*--engine ray": "starts a cluster, as bulk/test_ray_shards.py does",
    r"scenegpi experiment labelling --(quick|out)": "minutes, or hours; labelling/ runs it with fewer graphs",
}
"""Lines of a page that are not run as they stand, and why."""


def page_path(name: str) -> Path:
    return next(page for page in PAGES if page.name == name)


def blocks(name: str, *kinds: str) -> list[str]:
    """The fenced blocks of these kinds, in order."""
    return [text for kind, text in BLOCK.findall(page_path(name).read_text()) if kind in kinds]


def why_not(line: str) -> str:
    """Why a line is not run; empty where it is."""
    return next((reason for pattern, reason in NOT_RUN.items() if re.match(pattern, line)), "")


def commands(name: str) -> list[str]:
    """The lines of the bash blocks, without comments."""
    lines = (
        shlex.join(shlex.split(line, comments=True)) for text in blocks(name, "bash") for line in text.splitlines()
    )
    return [line for line in lines if line]


def run_command(line: str) -> None:
    words = shlex.split(line)
    assert words[0] == "scenegpi", line
    done = CliRunner().invoke(app, words[1:])
    assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception!r}"


def run_page(
    name: str,
    replaced: Mapping[str, object] | None = None,
    added: Mapping[str, Sequence[str]] | None = None,
    names: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Runs a page from top to bottom in the current folder; the names that its Python has set.

    Files that it shows (TOML) are written, commands must succeed. Words of `replaced` stand for something else here;
    to lines that begin with a key of `added` its words are added, so that they take seconds; `names` are known to its
    Python.
    """
    found: dict[str, object] = {"__name__": name, **(names or {})}
    for kind, text in BLOCK.findall(page_path(name).read_text()):
        for word, value in (replaced or {}).items():
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", lambda _, value=value: str(value), text)
        if kind == "toml":
            Path(text.splitlines()[0].removeprefix("# ")).write_text(text)
        elif kind == "python":
            exec(compile(text, name, "exec"), found)
        elif kind == "bash":
            for line in text.splitlines():
                if not why_not(line):
                    run_command(_with(shlex.join(shlex.split(line, comments=True)), added or {}))
    return found


def _with(line: str, added: Mapping[str, Sequence[str]]) -> str:
    return next(
        (shlex.join([*shlex.split(line), *more]) for start, more in added.items() if line.startswith(start)), line
    )


def mentioned(page: Path) -> Iterator[str]:
    """Commands anywhere on a page: in bash blocks, indented, and in running text between backticks."""
    text = page.read_text()
    for kind, block in BLOCK.findall(text):
        if kind == "bash":
            yield from (shlex.join(shlex.split(line, comments=True)) for line in block.splitlines())
    text = BLOCK.sub("", text)
    yield from re.findall(r"^    ((?:scenegpi|python (?:benchmarks|tools)/) ?\S.*)$", text, re.M)
    yield from re.findall(r"`((?:scenegpi |python (?:benchmarks|tools)/)[^`\n]*)`", text)
