"""A store's answers equal a loop over everything and SPARQL over the N-Triples export."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenegpi import SceneGraph, Vocabulary
from scenegpi.data.export import to_ntriples
from scenegpi.store import Store, parse_query
from scenegpi.store.query import Clause, Count, Query, Thing, Word
from store.brute import brute, sparql

VOCABULARY = Vocabulary(["man", "woman", "horse", "hat", "o'dog"], ["riding", "wearing", "on", "sitting on"])


def random_graph(rng, number) -> SceneGraph:
    n = int(rng.integers(0, 5))
    r = int(rng.integers(0, 7)) if n else 0
    corners = np.sort(rng.uniform(0, 100, (n, 2, 2)), axis=1).reshape(n, 4)
    relations = np.column_stack([rng.integers(0, max(n, 1), (r, 2)), rng.integers(0, 4, r)])
    other = np.random.default_rng([1, number])
    described = [{w: 0.5 + other.random() / 2 for w in ("red", "Old oak") if other.random() < 0.5} for _ in range(n)]
    scores = {"scores": rng.uniform(size=n), "relation_scores": rng.uniform(size=r)} if number % 3 else {}
    return SceneGraph(
        corners,
        rng.integers(0, 5, n),
        VOCABULARY,
        relations,
        image_id=number,
        width=100,
        height=100,
        attributes=described if number % 4 else None,
        **scores,
    )


@pytest.fixture(scope="module")
def graphs():
    rng = np.random.default_rng(0)
    return [random_graph(rng, k) for k in range(60)]


@pytest.fixture(scope="module")
def store(graphs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores") / "a store's"
    store = Store(folder)
    store.add(graphs[:25])
    store.add(graphs[20:])  # twenty to twenty-four are replaced by themselves
    return store


EITHER = Word("horse", others=(Word("hats"),))
words_ = st.sampled_from([None, *map(Word, ("man", "person", "horse", "hats", "unicorn")), EITHER])
predicates_ = st.sampled_from(
    [None, *map(Word, ("ride", "wear", "on", "sitting on")), Word("on", others=(Word("ride"),))]
)


@st.composite
def queries(draw, counts=True, attributes=False, most=3):
    described = st.lists(st.sampled_from([Word("red"), Word("old oak")]), max_size=2, unique=True).map(tuple)
    thing = st.builds(Thing, words_, st.none(), described) if attributes else words_.map(Thing)
    things = tuple(draw(st.lists(thing, min_size=1, max_size=3)))
    ends = st.integers(0, len(things) - 1)
    clauses = []
    for _ in range(draw(st.integers(1, most))):
        other = draw(st.one_of(st.none(), ends))
        count = (
            draw(st.one_of(st.none(), st.builds(Count, st.sampled_from([">=", "<=", "="]), st.integers(0, 3))))
            if counts
            else None
        )
        clauses.append(
            Clause(draw(ends), draw(predicates_) if other is not None else None, other, draw(st.booleans()), count)
        )
    return Query(things, tuple(clauses))


def expected(graphs, query, words):
    return {str(graph.image_id): found for graph in graphs if (found := brute(graph, query, words))}


@settings(max_examples=80)
@given(queries(attributes=True))
def test_answers_equal_a_loop_over_everything(graphs, store, query):
    wanted = expected(graphs, query, store.words)
    answer = store.search(query, limit=1000)
    assert {hit.key for hit in answer.hits} == set(wanted)
    assert answer.images == len(wanted)
    for hit in answer.hits:
        assert hit.count == len(wanted[hit.key])
        assert math.isclose(hit.score, max(wanted[hit.key].values()), rel_tol=1e-6)
        for match in hit.matches:
            numbers = tuple(number for number in match.objects if number is not None)
            assert math.isclose(match.score, wanted[hit.key][numbers], rel_tol=1e-6)
    assert [hit.score for hit in answer.hits] == sorted((hit.score for hit in answer.hits), reverse=True)


FEW = 20
"""Graphs that SPARQL is asked of: it takes seconds where things are not linked."""


@pytest.fixture(scope="module")
def rdf(graphs):
    pyoxigraph = pytest.importorskip("pyoxigraph")
    found = pyoxigraph.Store()
    found.load("".join(map(to_ntriples, graphs[:FEW])).encode(), format=pyoxigraph.RdfFormat.N_TRIPLES)
    return found


@settings(max_examples=25)
@given(queries(counts=False))
def test_answers_equal_sparql_over_the_rdf_export(graphs, store, rdf, query):
    wanted = expected(graphs[:FEW], query, store.words)
    rows = {tuple(str(value.value) for value in row) for row in rdf.query(sparql(query, store.words))}
    found: dict[str, set] = {}
    for image, *objects in rows:
        found.setdefault(image.rpartition(":")[2], set()).add(tuple(int(o.rpartition(":")[2]) for o in objects))
    assert found == {key: set(each) for key, each in wanted.items()}


def test_relations_of_an_object_to_itself_are_found(graphs, store):
    loops = {str(g.image_id) for g in graphs for s, o, _ in g.relations if s == o}
    assert len(loops) > 5
    assert {hit.key for hit in store.search("?a * ?a", limit=100).hits} == loops


def test_a_store_gives_graphs_back(graphs, store):
    by_key = {hit.key: hit for hit in store.images(1000)}
    assert set(by_key) == {str(graph.image_id) for graph in graphs}
    for graph in graphs:
        found = store.graph(by_key[str(graph.image_id)].image)
        assert found.names == graph.names
        assert np.allclose(found.boxes, graph.boxes, atol=1e-4)
        rows = [{k: round(v, 6) for k, v in row} for row in graph.attributes or [()] * len(graph)]
        assert [{k: round(v, 6) for k, v in row} for row in found.attributes or [()] * len(graph)] == rows
        assert sorted(map(tuple, found.relations.tolist())) == sorted(map(tuple, graph.relations.tolist()))
        assert np.allclose(sorted(found.triplet_scores()), sorted(graph.triplet_scores()), atol=1e-6)


@settings(max_examples=40)
@given(queries(attributes=True))
def test_a_query_written_out_reads_back(store, query):
    """What a query says of itself finds the same images."""
    known = all(thing.word is None or thing.word.text != "unicorn" for thing in query.things)
    if not known or any(
        clause.object is None and query.things[clause.subject].word is None for clause in query.clauses
    ):
        return  # a lone * is no sentence
    again = parse_query(str(query), store.words)
    first, second = store.search(query, limit=100), store.search(again, limit=100)
    assert {hit.key for hit in first.hits} == {hit.key for hit in second.hits}, str(query)


def test_a_whole_graph_finds_its_own_image(graphs, store):
    for graph in graphs:
        if len(graph.relations) < 3 or graph.scores is not None:
            continue
        ranked = store.similar(graph, limit=60)
        scores = {hit.key: hit.score for hit in ranked}
        assert len(ranked) == len(graphs)
        assert scores[str(graph.image_id)] == pytest.approx(max(scores.values()))
