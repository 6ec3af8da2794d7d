"""Graphs in the formats of other tools: files of one graph, libraries, whole data sets, knowledge for RAG.

    write_export(graph, "scene.graphml")
    text = EXPORTS["dot"].text(graph)

Names may hold anything: each writer escapes what its format would take for syntax, and control characters are written
out (\\\\x1b), so that a file is always well formed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scenegpi.data.export.graph_files import to_dot, to_graphml, to_node_link, to_ntriples
from scenegpi.errors import DataError
from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph


class Export(NamedTuple):
    """How a format is written: `text` gives the whole file of a graph, `suffix` is its file suffix."""

    text: Callable[[SceneGraph], str]
    suffix: str


EXPORTS = {
    "graphml": Export(to_graphml, ".graphml"),  # networkx, Gephi, yEd, Cytoscape
    "dot": Export(to_dot, ".dot"),  # Graphviz
    "networkx": Export(to_node_link, ".networkx.json"),
    "rdf": Export(to_ntriples, ".nt"),
}


def write_export(graph: SceneGraph, target: str | Path, kind: str | None = None) -> Path:
    """Writes one graph, whole or not at all; `kind` is one of EXPORTS, by default the suffix decides."""
    target = Path(target)
    kind = kind or next((name for name, each in EXPORTS.items() if target.name.lower().endswith(each.suffix)), None)
    if kind not in EXPORTS:
        ends = ", ".join(f"{name} ({each.suffix})" for name, each in EXPORTS.items())
        raise DataError(target, f"the name does not tell the format; expected one of {ends}")
    with whole_file(target) as part:
        part.write_text(EXPORTS[kind].text(graph), encoding="utf-8")
    return target
