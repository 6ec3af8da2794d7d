"""Files of one graph for other tools: GraphML, node-link JSON, DOT, and RDF as N-Triples.

RDF has one statement per line, so that files of many images can simply be put one after the other:

    <urn:scenegpi:image:7>            a :Image; :file, :width, :height; :contains its objects
    <urn:scenegpi:image:7:object:0>   a <urn:scenegpi:label:man>; rdfs:label "man"; :x1 :y1 :x2 :y2; :score
    <...:object:0> <urn:scenegpi:predicate:riding> <...:object:1>
    <urn:scenegpi:image:7:relation:0> a :Relation; :subject, :predicate, :object; :score

`:term` means <urn:scenegpi:term:...>. Names are percent-encoded in IRIs and unchanged in rdfs:label.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

from scenegpi.data.export.libraries import to_networkx
from scenegpi.errors import printable
from scenegpi.graph import SceneGraph

if TYPE_CHECKING:
    import networkx

BASE = "urn:scenegpi:"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
RDFS_LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
XSD = "http://www.w3.org/2001/XMLSchema#"


def plain_networkx(graph: SceneGraph) -> networkx.MultiDiGraph:
    """Nodes 0..N-1 with label, x1, y1, x2, y2, score; edges with predicate and scores; the image's fields."""
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
    """A DOT string that shows the text as it is: no backslash in it acts as an escape in Graphviz."""
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def to_ntriples(graph: SceneGraph, name: str | None = None) -> str:
    """The statements of one image; `name` is used if it has neither id nor file."""
    return "".join(f"{line} .\n" for line in _statements(graph, name))


def _statements(graph: SceneGraph, name: str | None) -> Iterator[str]:
    image = f"image:{encoded(str(name or 'image' if graph.key is None else graph.key))}"
    yield f"{iri(image)} {RDF_TYPE} {term('Image')}"
    if graph.file is not None:
        yield f"{iri(image)} {term('file')} {literal(graph.file)}"
    for side in ("width", "height"):
        if getattr(graph, side) is not None:
            yield f"{iri(image)} {term(side)} {number(getattr(graph, side))}"
    for i, label in enumerate(graph.names):
        thing = iri(f"{image}:object:{i}")
        yield f"{iri(image)} {term('contains')} {thing}"
        yield f"{thing} {RDF_TYPE} {iri(f'label:{encoded(label)}')}"
        yield f"{thing} {RDFS_LABEL} {literal(label)}"
        for side, value in zip(("x1", "y1", "x2", "y2"), graph.boxes[i].tolist(), strict=True):
            yield f"{thing} {term(side)} {number(value)}"
        if graph.scores is not None:
            yield f"{thing} {term('score')} {number(graph.scores.item(i))}"
    scores = graph.triplet_scores()
    for k, (s, o, p) in enumerate(graph.relations.tolist()):
        subject, object_ = iri(f"{image}:object:{s}"), iri(f"{image}:object:{o}")
        word = graph.vocabulary.predicates[p]
        predicate, relation = iri(f"predicate:{encoded(word)}"), iri(f"{image}:relation:{k}")
        yield f"{subject} {predicate} {object_}"
        yield f"{predicate} {RDFS_LABEL} {literal(word)}"
        yield f"{relation} {RDF_TYPE} {term('Relation')}"
        yield f"{relation} {term('subject')} {subject}"
        yield f"{relation} {term('predicate')} {predicate}"
        yield f"{relation} {term('object')} {object_}"
        if graph.relation_scores is not None:
            yield f"{relation} {term('score')} {number(scores.item(k))}"


def encoded(text: str) -> str:
    """Percent-encoded: letters, digits and - . _ ~ stay, everything else becomes %XX, the colon too."""
    return quote(text, safe="")


def iri(path: str) -> str:
    return f"<{BASE}{path}>"


def term(name: str) -> str:
    return iri(f"term:{name}")


def number(value: float) -> str:
    return f'"{value!r}"^^<{XSD}{"integer" if isinstance(value, int) else "double"}>'


def literal(text: str) -> str:
    """A string of N-Triples: its escapes of quotes, backslashes and control characters are those of JSON."""
    return json.dumps(text, ensure_ascii=False)
