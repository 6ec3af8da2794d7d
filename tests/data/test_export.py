"""Exports: what is written can be read by the tools it is for, whatever names hold."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from io import BytesIO

import networkx
import numpy as np
import pytest
from hypothesis import given

import strategies
from scenegpi import SceneGraph, Vocabulary
from scenegpi.data import DataError
from scenegpi.data.export import EXPORTS, to_dot, to_graphml, to_node_link, to_ntriples, write_export
from scenegpi.data.export.graph_files import encoded
from scenegpi.errors import printable
from scenegpi.graph_json import factors

HOSTILE = [
    '"]; } digraph {',
    "</node><x a='",
    "a\nb\x1b[2J\x00",
    "\\N \\n \\",
    "> . <urn:x> <",
    "straße ☃ %41",
    "]]>&lt;",
]
WORDS = Vocabulary(HOSTILE, HOSTILE[::-1], "hostile")
IRI = r'<[^\x00-\x20<>"{}|^`\\]*>'
TEXT = r'"(?:[^\x22\x5C\x0A\x0D]|\\[tbnrf"\'\\]|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8})*"'
STATEMENT = re.compile(rf"{IRI} {IRI} (?:{IRI}|{TEXT}(?:\^\^{IRI})?) \.\n")
QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)


def hostile() -> SceneGraph:
    n = len(HOSTILE)
    return SceneGraph(
        [[i, i, i + 5.25, i + 9] for i in range(n)],
        list(range(n)),
        WORDS,
        [[i, (i + 1) % n, i] for i in range(n)] + [[0, 0, 1], [0, 1, 2]],
        scores=np.linspace(0.1, 0.9, n),
        relation_scores=np.linspace(0.2, 0.8, n + 2),
        image_id='a"b>\n',
        file="x\x07.jpg",
        width=64,
        height=48,
    )


def same_as(graph: SceneGraph, read: networkx.MultiDiGraph) -> None:
    """The graph that networkx holds says what ours does."""
    assert sorted(read.nodes, key=int) == [type(node)(i) for i, node in enumerate(sorted(read.nodes, key=int))]
    for node, data in read.nodes(data=True):
        i = int(node)
        assert data["label"] == printable(graph.names[i])
        assert [data[key] for key in ("x1", "y1", "x2", "y2")] == graph.boxes[i].tolist()
        assert data["score"] == (1.0 if graph.scores is None else float(graph.scores[i]))
    scores = zip(graph.triplet_scores().tolist(), factors(graph)[:, 2].tolist(), strict=True)
    ours = sorted(
        (s, o, printable(graph.vocabulary.predicates[p]), *both)
        for (s, o, p), both in zip(graph.relations.tolist(), scores, strict=True)
    )
    found = ((int(s), int(o), d["predicate"], d["score"], d["predicate_score"]) for s, o, d in read.edges(data=True))
    assert sorted(found) == ours


@given(strategies.graphs())
def test_graphml_is_read_back(graph):
    text = to_graphml(graph)
    same_as(graph, networkx.read_graphml(BytesIO(text.encode()), force_multigraph=True))


@given(strategies.graphs())
def test_node_link_is_read_back(graph):
    same_as(graph, networkx.node_link_graph(json.loads(to_node_link(graph)), edges="edges"))


def test_hostile_names_survive_graphml_and_node_link():
    same_as(hostile(), networkx.read_graphml(BytesIO(to_graphml(hostile()).encode()), force_multigraph=True))
    same_as(hostile(), networkx.node_link_graph(json.loads(to_node_link(hostile())), edges="edges"))
    ElementTree.fromstring(to_graphml(hostile()))


def statements(text: str) -> list[str]:
    lines = [f"{line}\n" for line in text.split("\n")[:-1]]
    for line in lines:
        assert STATEMENT.fullmatch(line), line
    return lines


@given(strategies.graphs())
def test_ntriples_are_statements(graph):
    lines = statements(to_ntriples(graph))
    assert sum(":contains>" in line for line in lines) == len(graph)
    assert sum(":term:Relation>" in line for line in lines) == len(graph.relations)


def test_hostile_names_in_ntriples():
    lines = statements(to_ntriples(hostile()))
    for name in HOSTILE:
        assert sum(f"<urn:scenegpi:label:{encoded(name)}>" in line for line in lines) == 1
    labels = {json.loads(line.split("label> ", 1)[1].removesuffix(" .\n")) for line in lines if "schema#label>" in line}
    assert labels == set(HOSTILE)


def test_ntriples_of_a_small_scene():
    graph = SceneGraph(
        [[0, 0, 2, 3], [1, 1, 2, 2]], [0, 1], Vocabulary(["man", "hat"], ["wearing"]), [[0, 1, 0]], image_id=7
    )
    text = to_ntriples(graph)
    assert (
        "<urn:scenegpi:image:7:object:0> <urn:scenegpi:predicate:wearing> <urn:scenegpi:image:7:object:1> .\n" in text
    )
    assert (
        '<urn:scenegpi:image:7:object:0> <urn:scenegpi:term:y2> "3.0"^^<http://www.w3.org/2001/XMLSchema#double> .\n'
        in text
    )


def without_strings(text: str) -> str:
    return QUOTED.sub("S", text)


@given(strategies.graphs())
def test_dot_has_a_node_for_each_thing(graph):
    bare = without_strings(to_dot(graph))
    assert len(re.findall(r"^  o\d+ \[", bare, re.M)) == len(graph)
    assert len(re.findall(r"^  r\d+ \[", bare, re.M)) == len(graph.relations)


def test_hostile_names_stay_inside_dot_strings():
    """With every string taken out, only our own syntax is left."""
    bare = without_strings(to_dot(hostile()))
    line = r"  o\d+ \[shape=box, fillcolor=S, label=S, box=S, score=[\d.]+\];"
    relation = r"  r\d+ \[shape=ellipse, fillcolor=S, label=S, score=[\d.]+\];\n  o\d+ -> r\d+ \[arrowhead=none\]; r\d+ -> o\d+;"
    head = r"digraph scene \{\n  label=S; labelloc=t; fontname=Helvetica;\n  node \[fontname=Helvetica, style=filled\]; edge \[color=S\];"
    assert re.fullmatch(rf"{head}\n(?:{line}\n)+(?:{relation}\n)+\}}\n", bare)


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_graphviz_draws_hostile_names():
    done = subprocess.run(["dot", "-Tplain"], input=to_dot(hostile()), capture_output=True, text=True)
    assert done.returncode == 0
    assert not done.stderr


@pytest.mark.parametrize("kind", EXPORTS)
def test_files_are_written_by_their_suffix(tmp_path, kind):
    target = tmp_path / f"scene{EXPORTS[kind].suffix}"
    assert write_export(hostile(), target) == target
    assert target.read_text(encoding="utf-8") == EXPORTS[kind].text(hostile())


def test_an_unknown_suffix_is_said(tmp_path):
    with pytest.raises(DataError, match="does not tell the format"):
        write_export(hostile(), tmp_path / "x.txt")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_graph_has_a_file_in_every_format():
    empty = SceneGraph([], [], WORDS)
    assert networkx.read_graphml(BytesIO(to_graphml(empty).encode())).number_of_nodes() == 0
    statements(to_ntriples(empty, "nothing"))
    assert "urn:scenegpi:image:nothing" in to_ntriples(empty, "nothing")
