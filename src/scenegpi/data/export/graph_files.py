"""A graph as networkx holds it, and files of it with text and numbers only: GraphML, node-link JSON, DOT."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from scenegpi.errors import printable
from scenegpi.graph import SceneGraph

if TYPE_CHECKING:
    import networkx


def to_networkx(graph: SceneGraph) -> networkx.MultiDiGraph:
    """Nodes are box indices (label, box, score), edges the relations (predicate, score, predicate_score).

    The score of a relation is P(subject) P(object) P(predicate); `predicate_score` is its last factor.
    """
    import networkx

    out = networkx.MultiDiGraph(image_id=graph.image_id, file=graph.file, width=graph.width, height=graph.height)
    scores = np.ones(len(graph)) if graph.scores is None else graph.scores
    for i, name in enumerate(graph.names):
        out.add_node(i, label=name, box=tuple(graph.boxes[i].tolist()), score=float(scores[i]))
    weights = np.ones(len(graph.relations)) if graph.relation_scores is None else graph.relation_scores
    rows = zip(graph.relations.tolist(), graph.triplet_scores().tolist(), weights.tolist(), strict=True)
    for (s, o, p), score, weight in rows:
        out.add_edge(s, o, predicate=graph.vocabulary.predicates[p], score=score, predicate_score=weight)
    return out


def plain_networkx(graph: SceneGraph) -> networkx.MultiDiGraph:
    """Nodes 0..N-1 with label, x1, y1, x2, y2, score; edges with predicate and scores; what is known of the image."""
    out = to_networkx(graph)
    about = {key: printable(each) if isinstance(each, str) else each for key, each in out.graph.items()}
    out.graph = {key: value for key, value in about.items() if value is not None}
    for _, node in out.nodes(data=True):
        box = node.pop("box")
        node |= {"label": printable(node["label"]), **dict(zip(("x1", "y1", "x2", "y2"), box, strict=True))}
    for _, _, edge in out.edges(data=True):
        edge["predicate"] = printable(edge["predicate"])
    return out


def to_graphml(graph: SceneGraph) -> str:
    """The text of a GraphML file; `networkx.read_graphml` gives the graph back, nodes named by their number."""
    import networkx

    plain = plain_networkx(graph)
    if "image_id" in plain.graph:  # a number in one file and a text in the next would be two types of one key
        plain.graph["image_id"] = str(plain.graph["image_id"])
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join(networkx.generate_graphml(plain)) + "\n"


def to_node_link(graph: SceneGraph) -> str:
    """The text of a node-link JSON file: `networkx.node_link_graph(json.load(file), edges="edges")` reads it."""
    import networkx

    data = networkx.node_link_data(plain_networkx(graph), edges="edges")
    return json.dumps(data, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def to_dot(graph: SceneGraph) -> str:
    """The text of a DOT file; `dot -Tsvg scene.dot -o scene.svg` draws it."""
    title = graph.file if graph.file is not None else graph.image_id
    lines = [
        "digraph scene {",
        f"  label={quoted('' if title is None else str(title))}; labelloc=t; fontname=Helvetica;",
        '  node [fontname=Helvetica, style=filled]; edge [color="#8A8A8A"];',
    ]
    for i, name in enumerate(graph.names):
        box = " ".join(f"{value:g}" for value in graph.boxes[i].tolist())
        score = "" if graph.scores is None else f", score={graph.scores[i]:.4f}"
        lines.append(f'  o{i} [shape=box, fillcolor="#DCEAF5", label={quoted(name)}, box="{box}"{score}];')
    scores = graph.triplet_scores()
    for k, (s, o, p) in enumerate(graph.relations.tolist()):
        score = "" if graph.relation_scores is None else f", score={scores[k]:.4f}"
        name = quoted(graph.vocabulary.predicates[p])
        lines.append(f'  r{k} [shape=ellipse, fillcolor="#FBE3D3", label={name}{score}];')
        lines.append(f"  o{s} -> r{k} [arrowhead=none]; r{k} -> o{o};")
    return "\n".join([*lines, "}", ""])


def quoted(text: str) -> str:
    """A DOT string that shows the text as it is: no backslash of it is an escape of Graphviz."""
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
