"""The proof's illustration holds the proof's numbers."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from scenegpi.errors import DataError
from scenegpi.paper.figures.proof import HASH, construct, draw_proof


def words_of(path):
    return "".join(ElementTree.parse(path).getroot().itertext())


def test_every_pair_lies_in_the_row_and_the_column_of_its_buckets():
    found = construct()
    assert found.z.tolist() == [[11, 12, 13], [21, 22, 23], [31, 32, 33]]
    for i in range(3):
        for j in range(3):
            assert found.phi[i, j].tolist() == [found.z[i, j] if bucket == HASH[j] else 0 for bucket in range(5)]
            assert found.m[HASH[i], HASH[j]] == found.z[i, j]
        assert np.array_equal(found.s[i], found.phi[i].sum(0))
        assert np.array_equal(found.alpha[i], np.outer(np.eye(5)[HASH[i]], found.s[i]))
    assert np.count_nonzero(found.m) == 9


def test_the_illustration_shows_them(tmp_path):
    text = words_of(draw_proof(tmp_path / "proof.svg"))
    assert all(f"{name} {k}" in text for k in (1, 2, 3) for name in ("s", "alpha"))
    assert draw_proof(tmp_path / "proof.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(DataError, match=r"\.png or \.svg"):
        draw_proof(tmp_path / "proof.txt")
