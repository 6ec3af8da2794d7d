"""The house: a room knows the rooms above it in the list, never those below. The imports are read, not run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import scenegpi

SOURCE = Path(scenegpi.__file__).parent
ROOMS = [
    {"lazy", "errors", "threads", "progress", "files", "locks", "npz", "boxes", "pairs", "options"},
    {"vocabulary", "checks", "graph", "graph_json", "graph_text"},
    {"gpi"},
    {"metrics"},
    {"data"},
    {"words"},
    {"features"},
    {"vision"},
    {"models"},
    {"onnx"},
    {"prediction"},
    {"evaluation"},
    {"bulk"},
    {"training"},
    {"viz"},
    {"store"},
    {"serve"},
    {"paper"},
    {"commands"},
    {"cli"},
]
FLOOR = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms}
ALLOWED = {
    ("graph", "viz"): "graph.draw",
    ("graph", "data"): "SceneGraph.from_detections",
}
"""Late imports behind a convenience method of the record; nothing else may look down."""


def imports(path: Path) -> set[str]:
    """Rooms that a file imports, at its top or late."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module] if node.module != "scenegpi" else [f"scenegpi.{alias.name}" for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("scenegpi.")}
    return found & set(FLOOR)


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = sorted(path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py")


def test_every_room_has_its_place() -> None:
    assert {room_of(path) for path in FILES} - {"__main__"} <= set(FLOOR)


@pytest.mark.parametrize("room", sorted({room_of(path) for path in FILES}))
def test_rooms_look_up_only(room: str) -> None:
    wrong = [
        f"{path.relative_to(SOURCE)} imports {other}"
        for path in FILES
        if room_of(path) == room
        for other in imports(path)
        if FLOOR[other] > FLOOR[room] and (room, other) not in ALLOWED
    ]
    assert not wrong


def test_one_table_names_the_paper() -> None:
    """The product reaches a compared system by the name of its preset, and the paper by nothing else."""
    named = [path.relative_to(SOURCE) for path in FILES if "scenegpi.paper" in path.read_text(encoding="utf-8")]
    assert [str(path) for path in named if path.parts[0] not in ("paper", "commands")] == ["models/systems.py"]


CONTRIBUTING = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_contributing_names_files_that_exist() -> None:
    named = re.findall(r"`([\w/.-]+(?:\.py|/))`", CONTRIBUTING)
    assert len(named) > 20
    assert [each for each in named if not any((base / each).exists() for base in (SOURCE, SOURCE.parents[1]))] == []


def test_the_house_is_judged_with_true_line_counts() -> None:
    """Within a twentieth: nobody counts anew for a few lines."""
    text = (SOURCE.parents[1] / "docs" / "lab" / "house.md").read_text(encoding="utf-8")
    told = {room: int(lines.replace(",", "")) for room, lines in re.findall(r"^\| `(\w+)/` \| ([\d,]+) \|", text, re.M)}
    rooms = {folder.name: folder for folder in SOURCE.iterdir() if any(folder.glob("*.py"))}
    rooms |= {name: SOURCE.parents[1] / name for name in ("tests", "benchmarks", "tools")}
    assert told.keys() == rooms.keys()
    for name, folder in rooms.items():
        lines = sum(path.read_text(encoding="utf-8").count("\n") for path in folder.rglob("*.py"))
        assert told[name] == pytest.approx(lines, rel=0.05), f"{name}/: {lines:,} lines"


def test_contributing_names_every_room() -> None:
    table = CONTRIBUTING.partition("| room |")[2].partition("\n\n")[0]
    rooms = {each.strip("/") for each in re.findall(r"`([a-z_]+/?)`", table)}
    assert {room_of(path) for path in FILES} - rooms - {"__main__", "cli"} == set()


def test_no_function_is_long() -> None:
    """More than 60 lines: two functions; in `commands`, which parse, call and print, a part of another room."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    long = [
        f"{path.name}: {node.name}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, functions) and (node.end_lineno or 0) - node.lineno >= 60
    ]
    assert not long
