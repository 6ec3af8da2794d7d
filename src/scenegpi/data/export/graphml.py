"""GraphML, by networkx: nodes and edges with their attributes as typed keys."""

from __future__ import annotations

from scenegpi.data.export.attributes import plain_networkx
from scenegpi.graph import SceneGraph


def to_graphml(graph: SceneGraph) -> str:
    """The text of a GraphML file; `networkx.read_graphml` gives the graph back, nodes named by their number."""
    import networkx

    plain = plain_networkx(graph)
    for key in ("image_id",):  # a number in one file and a text in the next would be two types of one key
        if key in plain.graph:
            plain.graph[key] = str(plain.graph[key])
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join(networkx.generate_graphml(plain)) + "\n"
