"""A graph as networkx holds it, with attributes that every file format can: text, whole and real numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scenegpi.errors import printable
from scenegpi.graph import SceneGraph

if TYPE_CHECKING:
    import networkx


def plain_networkx(graph: SceneGraph) -> networkx.MultiDiGraph:
    """Nodes 0..N-1 with label, x1, y1, x2, y2, score; edges with predicate, score; image_id, file, width, height."""
    import networkx

    full = graph.to_networkx()
    about = {key: _plain(value) for key, value in full.graph.items() if value is not None}
    out = networkx.MultiDiGraph(**about)
    for i, node in full.nodes(data=True):
        corners = dict(zip(("x1", "y1", "x2", "y2"), node["box"], strict=True))
        out.add_node(i, label=printable(node["label"]), **corners, score=node["score"])
    for s, o, edge in full.edges(data=True):
        out.add_edge(s, o, predicate=printable(edge["predicate"]), score=edge["score"])
    return out


def _plain(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value
