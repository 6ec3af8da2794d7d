"""DOT, for Graphviz: objects are boxes, relations ellipses between them, as in the paper's figures."""

from __future__ import annotations

from scenegpi.errors import printable
from scenegpi.graph import SceneGraph


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
