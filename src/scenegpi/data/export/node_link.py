"""networkx's node-link JSON: `networkx.node_link_graph(json.load(file), edges="edges")` gives the graph back."""

from __future__ import annotations

import json

from scenegpi.data.export.attributes import plain_networkx
from scenegpi.graph import SceneGraph


def to_node_link(graph: SceneGraph) -> str:
    """The text of the JSON file."""
    import networkx

    data = networkx.node_link_data(plain_networkx(graph), edges="edges")
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
