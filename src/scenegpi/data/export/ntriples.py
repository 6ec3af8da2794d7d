"""RDF as N-Triples: one statement a line, so that files of many images can simply be put one after the other.

    <urn:scenegpi:image:7>            a :Image; :file, :width, :height; :contains its objects
    <urn:scenegpi:image:7:object:0>   a <urn:scenegpi:label:man>; rdfs:label "man"; :x1 :y1 :x2 :y2; :score
    <...:object:0> <urn:scenegpi:predicate:riding> <...:object:1>
    <urn:scenegpi:image:7:relation:0> a :Relation; :subject, :predicate, :object; :score

`:term` stands for <urn:scenegpi:term:...>. Names are percent-encoded in IRIs and stand as they are in rdfs:label.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

from scenegpi.graph import SceneGraph

BASE = "urn:scenegpi:"
RDF_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
RDFS_LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
XSD = "http://www.w3.org/2001/XMLSchema#"


def to_ntriples(graph: SceneGraph, name: str | None = None) -> str:
    """The statements of one image; `name` stands for it where it has neither id nor file."""
    return "".join(f"{line} .\n" for line in _statements(graph, name))


def _statements(graph: SceneGraph, name: str | None) -> Iterator[str]:
    given = graph.image_id if graph.image_id is not None else graph.file
    image = f"image:{encoded(str(given if given is not None else name or 'image'))}"
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
