"""Names: content decides equality, references tell vocabularies apart, nonsense is refused."""

from __future__ import annotations

import pickle

import pytest

from scenegpi import Vocabulary


def test_indices_and_equality():
    a, b = Vocabulary(["x", "y"], ["p"], "one"), Vocabulary(("x", "y"), ["p"])
    assert a == b
    assert hash(a) == hash(b)
    assert a != Vocabulary(["y", "x"], ["p"])
    assert a.object_index == {"x": 0, "y": 1}
    assert a.predicate_index == {"p": 0}
    assert a.reference == f"one-{b.digest}"
    assert repr(a) == "Vocabulary('one', 2 objects, 1 predicates)"
    assert pickle.loads(pickle.dumps(a)).name == "one"
    assert Vocabulary.from_dict(a.to_dict()) == a


def test_is_immutable():
    vocabulary = Vocabulary(["x"])
    with pytest.raises(AttributeError):
        vocabulary.objects = ("y",)
    with pytest.raises(AttributeError):
        del vocabulary.name
    with pytest.raises(TypeError):
        vocabulary.object_index["y"] = 1


@pytest.mark.parametrize("objects", ["man", ["a", "a"], [""], [1], None, 3])
def test_nonsense_is_refused(objects):
    with pytest.raises(ValueError, match=r"vocabulary\.objects"):
        Vocabulary(objects)


@pytest.mark.parametrize("data", [[], {"name": 3, "objects": []}])
def test_from_dict_refuses_other_shapes(data):
    with pytest.raises(ValueError, match="vocabulary"):
        Vocabulary.from_dict(data)
