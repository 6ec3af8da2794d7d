"""Protocol: a value that prints in one line, round-trips, and says where another differs."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import pytest

from scenegpi.errors import MetricError
from scenegpi.metrics import Protocol

ODD = Protocol("sgdet", "none", (7,), 0.4, "skip", "best", (1, 70), 3, "VRD test")


@pytest.mark.parametrize("protocol", [Protocol(), ODD])
def test_round_trips_and_prints_in_one_line(protocol):
    assert Protocol.from_dict(json.loads(json.dumps(protocol.to_dict()))) == protocol
    assert pickle.loads(pickle.dumps(protocol)) == protocol
    assert "\n" not in str(protocol)
    assert hash(protocol) == hash(replace(protocol))


def test_the_line_says_what_matters():
    line = str(ODD)
    for word in ("SGDet", "no graph constraint", "K = 7", "IoU >= 0.4", "left out", "k = 1, 70", "VRD test"):
        assert word in line


def test_ks_are_sorted_and_distinct():
    assert Protocol(ks=(100, 20, 50, 20)).ks == (20, 50, 100)
    assert Protocol(ks=5).ks == (5,)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"task": "predicate"},
        {"constraint": "some"},
        {"empty": 0},
        {"ks": ()},
        {"ks": (0,)},
        {"ks": (2.5,)},
        {"ks": (True,)},
        {"iou": 0},
        {"iou": float("nan")},
        {"iou": "half"},
        {"per_pair": (-1,)},
        {"pair_k": 0},
        {"data": None},
        {"several": "all"},
    ],
)
def test_refuses(wrong):
    with pytest.raises(MetricError, match=f"protocol.{next(iter(wrong))}"):
        Protocol(**wrong)


def test_refuses_an_unknown_field():
    with pytest.raises(MetricError, match="nms"):
        Protocol.from_dict({"nms": 0.5})


def test_difference_names_every_field_that_changes_a_figure():
    assert Protocol().difference(replace(Protocol(), ks=(1,), constraint="graph")) == []
    for change in ({"task": "sgcls"}, {"iou": 0.3}, {"empty": "skip"}, {"data": "x"}, {"several": "best"}):
        assert len(Protocol().difference(replace(Protocol(), **change))) == 1
    assert len(Protocol().difference(ODD)) == 6


def test_the_very_boxes_are_said_and_need_given_boxes():
    strict = Protocol("predcls", match="identity")
    assert "the same boxes (by index)" in str(strict)
    assert Protocol.from_dict(strict.to_dict()) == strict
    assert Protocol("predcls").difference(strict) == [
        "the same boxes (by index) instead of IoU >= 0.5 with inclusive pixels"
    ]
    with pytest.raises(MetricError, match=r"protocol\.match: identity needs given boxes"):
        Protocol("sgdet", match="identity")
    with pytest.raises(MetricError, match=r"protocol\.match: 'near' is not one of"):
        Protocol(match="near")
