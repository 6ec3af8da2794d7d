"""The number of weights of each system by a closed formula, for VG150's 150 labels and 50 predicates."""

from __future__ import annotations

from itertools import pairwise

import pytest

from paper.systems.system_cases import SYSTEMS
from scenegpi.models import build_model
from scenegpi.models.layout_inputs import BOX_WIDTH, ENTITY_WIDTH, PAIR_INPUTS
from scenegpi.vocabulary import Vocabulary

C, K, W = 150, 51, 300
"""Labels, predicates with "no relation", words."""
LABEL, X, U = 64, 64 + ENTITY_WIDTH, PAIR_INPUTS
VOCABULARY = Vocabulary([f"o{i}" for i in range(C)], [f"p{i}" for i in range(K - 1)])


def layers(*widths: int) -> int:
    """Affine layers one after the other."""
    return sum(a * b + b for a, b in pairwise(widths))


def highway(width: int, h: int, count: int) -> int:
    return sum(6 * h * (d + 1) + 5 * h * h for d in [width] + [h] * (count - 1))


def imp(d: int = 128) -> int:
    gru = 6 * d * d + 6 * d
    return C * 64 + layers(X, d) + layers(U, d, d) + 2 * gru + 4 * (2 * d + 1) + layers(d, C) + layers(d, K)


def motifs(h: int = 256, pool: int = 512) -> int:
    decoder = 4 * h * (h + LABEL) + 4 * h * h + 8 * h + (C + 1) * LABEL
    context = highway(X, h, 2) + highway(h + LABEL, h, 4) + decoder + C * LABEL + 2 * layers(h, pool) + layers(h, C)
    return C * 64 + context + layers(U, h, pool) + layers(pool, K) + 2


def no_context(h: int = 256, pool: int = 512) -> int:
    return C * 64 + 2 * C * pool + layers(X, C) + layers(U, h, pool) + layers(pool, K) + 2


def transformer(d: int = 128, inner: int = 512) -> int:
    encoder = layers(d, 3 * d) + layers(d, d) + layers(d, inner, d) + 4 * d
    ends = layers(d, 2 * d) + layers(2 * d, d) + layers(2 * d, K)
    enter = layers(X, d) + layers(X + d + LABEL, d) + C * LABEL
    return C * 64 + enter + 6 * encoder + ends + layers(U, d, d) + layers(d, C) + layers(d, K) + 2


def graph_rcnn(d: int = 128, p: int = 64) -> int:
    def messages(a: int, b: int) -> int:
        return layers(a, a) + 2 * layers(b, a) + 2 * layers(a, b)

    attention = 3 * (layers(d, d) + d * d + d)
    proposals = 2 * layers(C + BOX_WIDTH, p, p)
    heads = layers(d, C) + layers(d, K)
    return C * 64 + proposals + layers(X, d) + layers(U, d, d) + attention + messages(d, d) + heads + messages(C, K)


def pe_net(d: int = 256) -> int:
    end = layers(W, d) + layers(X, d, d) + layers(2 * d, d)
    shared = layers(d, d, d) + 2 * d
    return C * 64 + 2 * end + layers(U, d, d) + layers(2 * d, d) + layers(W, d) + K * d + shared + 1 + layers(X, C)


def vctree(h: int = 128, pool: int = 256, score: int = 64) -> int:
    def tree(width: int) -> int:
        return layers(width, 5 * h) + 10 * h * h + 4 * h * (width + h) + 8 * h

    decoder = 4 * h * (2 * h + LABEL) + 4 * h * h + 8 * h + (2 * C + 1) * LABEL
    links = 2 * layers(X, score) + layers(3 * score + 1, score, 1)
    ends = 2 * layers(2 * h, pool) + layers(U, h, pool) + layers(pool, K) + layers(h, C)
    return C * 64 + links + tree(X) + tree(2 * h + LABEL) + decoder + ends + 2


def pixel2graph(c: int = 32, depth: int = 3, tag: int = 8) -> int:
    convolution = 9 * c * c + c
    heads = layers(c, 4 * c, 3 * (tag + C)) + layers(c, 4 * c, 6 * (K + 2 * tag))
    return 2 * C * c + convolution * (1 + 3 * depth + 1) + layers(c, 2) + heads


FORMULAS = {
    "imp": imp(),
    "imp-2017": imp(),
    "motifs": motifs(),
    "motifs-no-context": no_context(),
    "transformer": transformer(),
    "graph-rcnn": graph_rcnn(),
    "lu": layers(U, 256, 256) + layers(256, K - 1) + 2 * W * (K - 1) + K - 1,
    "lu-visual": layers(U, 256, 256) + layers(256, K),
    "vctree": vctree(),
    "pe-net": pe_net(),
    "pixel2graph-boxes": pixel2graph(),
}


@pytest.mark.parametrize("name", list(SYSTEMS))
def test_the_number_of_weights(name):
    assert build_model(SYSTEMS[name], VOCABULARY).num_parameters() == FORMULAS[name]
