"""Graphs in the formats of other tools: GraphML, DOT, networkx JSON, RDF. One way: no data set is read from them.

    write_export(graph, "scene.graphml")
    text = EXPORTS["dot"].text(graph)

Names may hold anything: each writer escapes what its format would take for syntax, and control characters are written
out (\\\\x1b), so that a file is always well formed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from scenegpi.data.export.graph_files import to_dot, to_graphml, to_node_link
from scenegpi.data.export.ntriples import to_ntriples
from scenegpi.errors import DataError
from scenegpi.files import whole_file
from scenegpi.graph import SceneGraph


@dataclass(frozen=True)
class Export:
    """How a format is written: `text` gives the whole file of a graph, `suffix` is how its name ends."""

    text: Callable[[SceneGraph], str]
    suffix: str
    about: str


EXPORTS = {
    "graphml": Export(to_graphml, ".graphml", "GraphML (networkx, Gephi, yEd, Cytoscape)"),
    "dot": Export(to_dot, ".dot", "DOT (Graphviz)"),
    "networkx": Export(to_node_link, ".networkx.json", "networkx node-link JSON"),
    "rdf": Export(to_ntriples, ".nt", "RDF as N-Triples"),
}


def write_export(graph: SceneGraph, target: str | Path, kind: str | None = None) -> Path:
    """Writes one graph, whole or not at all; `kind` is one of EXPORTS, by default told from the name's end."""
    target = Path(target)
    kind = kind or next((name for name, each in EXPORTS.items() if target.name.lower().endswith(each.suffix)), None)
    if kind not in EXPORTS:
        ends = ", ".join(f"{name} ({each.suffix})" for name, each in EXPORTS.items())
        raise DataError(target, f"which format? Expected one of {ends}")
    with whole_file(target) as part:
        part.write_text(EXPORTS[kind].text(graph), encoding="utf-8")
    return target


__all__ = ["EXPORTS", "Export", "to_dot", "to_graphml", "to_node_link", "to_ntriples", "write_export"]
