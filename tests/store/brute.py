"""Search by trying everything, and the same query in SPARQL: what the store's answers must equal."""

from __future__ import annotations

import operator
from itertools import product
from math import prod
from urllib.parse import quote

from scenegpi.store.query import Clause, Query

COMPARE = {">=": operator.ge, "<=": operator.le, "=": operator.eq}


def rows_of(graph, clause: Clause, query: Query, words, bound):
    """(subject, object, P(predicate)) of rows that a clause is about, given what is bound; objects alone: None."""
    names = graph.names

    def fits(i, thing):
        word = query.things[thing].word
        described = dict(graph.attributes[i]) if graph.attributes is not None else {}
        is_so = all(set(words.attribute(each)) & set(described) for each in query.things[thing].attributes)
        return (word is None or names[i] in words.objects(word)) and bound.get(thing, i) == i and is_so

    if clause.object is None:
        return [(i, None, 1.0) for i in range(len(graph)) if fits(i, clause.subject)]
    found = []
    for k, (s, o, p) in enumerate(graph.relations.tolist()):
        name = graph.vocabulary.predicates[p]
        if clause.predicate is not None and name not in words.relations(clause.predicate):
            continue
        if clause.subject == clause.object and s != o:
            continue
        if fits(s, clause.subject) and fits(o, clause.object):
            found.append((s, o, 1.0 if graph.relation_scores is None else float(graph.relation_scores[k])))
    return found


def brute(graph, query: Query, words) -> dict[tuple, float]:
    """Bindings of the things that must match -> best score; empty where the image is not found."""
    matched = [clause for clause in query.clauses if clause.matched]
    things = sorted({end for c in matched for end in (c.subject, c.object) if end is not None})
    used = [
        {end for other in query.clauses if other is not c for end in (other.subject, other.object)}
        for c in query.clauses
    ]
    found: dict[tuple, float] = {}
    for numbers in product(range(len(graph)), repeat=len(things)):
        bound = dict(zip(things, numbers, strict=True))
        options = [rows_of(graph, clause, query, words, bound) for clause in matched]
        if not all(options):
            continue
        fine = True
        for clause, others in zip(query.clauses, used, strict=True):
            if clause.count is not None:
                shared = {t: n for t, n in bound.items() if t in others and t != clause.subject}
                number = len({row[0] for row in rows_of(graph, clause, query, words, shared)})
                fine &= COMPARE[clause.count.comparison](number, clause.count.number) != clause.without
            elif clause.without:
                shared = {t: n for t, n in bound.items() if t in others}
                fine &= not rows_of(graph, clause, query, words, shared)
        if fine:
            scores = 1.0 if graph.scores is None else prod(float(graph.scores[n]) for n in numbers)
            for thing, n in bound.items():
                for each in query.things[thing].attributes:
                    scores *= dict(graph.attributes[n])[words.attribute(each)[0]]
            found[numbers] = scores * prod(max(row[2] for row in some) for some in options)
    return found


def sparql(query: Query, words) -> str:
    """Clauses without counts, over the N-Triples export: images and the objects of the things."""

    def pattern(clause, tag):
        ends = [clause.subject] if clause.object is None else [clause.subject, clause.object]
        text = ""
        for end in ends:
            text += f"?image <urn:scenegpi:term:contains> ?n{end} . "
            word = query.things[end].word
            if word is not None:
                text += f"VALUES ?l{tag}{end} {{ {' '.join(f'<urn:scenegpi:label:{quote(n, safe=str())}>' for n in words.objects(word))} }} "
                text += f"?n{end} a ?l{tag}{end} . "
        if clause.object is not None:
            r = f"?r{tag}"
            text += f"{r} <urn:scenegpi:term:subject> ?n{clause.subject} ; <urn:scenegpi:term:object> ?n{clause.object} ; <urn:scenegpi:term:predicate> ?p{tag} . "
            if clause.predicate is not None:
                names = words.relations(clause.predicate)
                text += f"VALUES ?p{tag} {{ {' '.join(f'<urn:scenegpi:predicate:{quote(n, safe=str())}>' for n in names)} }} "
        return text

    body = "".join(pattern(c, k) for k, c in enumerate(query.clauses) if c.matched)
    for k, clause in enumerate(query.clauses):
        if clause.without:
            body += f"FILTER NOT EXISTS {{ {pattern(clause, k)} }} "
    things = sorted({end for c in query.clauses if c.matched for end in (c.subject, c.object) if end is not None})
    return f"SELECT DISTINCT ?image {' '.join(f'?n{t}' for t in things)} WHERE {{ ?image a <urn:scenegpi:term:Image> . {body} }}"
