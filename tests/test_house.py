"""The house: a room knows the rooms above it in the list, never those below. The imports are read, not run."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import scenegpi

SOURCE = Path(scenegpi.__file__).parent
ROOMS = [
    {"lazy", "errors", "threads", "progress", "files", "locks", "npz", "boxes", "pairs", "options"},
    {"vocabulary", "checks", "graph", "graph_json"},
    {"gpi"},
    {"metrics"},
    {"data"},
    {"rendered"},
    {"words"},
    {"features"},
    {"vision"},
    {"models"},
    {"onnx"},
    {"prediction"},
    {"training"},
    {"labelling"},
    {"viz"},
    {"store"},
    {"serve"},
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
