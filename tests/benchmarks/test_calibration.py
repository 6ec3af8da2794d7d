"""The benchmark of calibration: its questions, its error, its gains."""

from __future__ import annotations

import numpy as np
import pytest

from calibration import Part, fit, measure
from calibration_scores import Said, calibration_error, figures, gains, questions
from models.model_cases import VOCABULARY, random_graphs, small_model
from scenegpi.graph import SceneGraph

BOXES = [[0, 0, 9, 9], [5, 5, 20, 20]]
PAIRS = [[0, 1], [1, 0]]


def test_questions_by_hand():
    truth = SceneGraph(BOXES, [1, 3], VOCABULARY, [[0, 1, 0], [0, 1, 2], [0, 1, 2]])
    pair_dist = np.array([[0.2, 0.1, 0.1, 0.6], [0.7, 0.1, 0.15, 0.05]])
    label_dist = np.array([[0.1, 0.6, 0.1, 0.1, 0.1], [0.0, 0.0, 1.0, 0.0, 0.0]])
    found = truth.replace(pairs=PAIRS, pair_dist=pair_dist, label_dist=label_dist, relations=np.zeros((0, 3), int))
    said = questions([found], [truth], "sgcls")
    assert said["related"].rows[:, :2] == pytest.approx(np.array([[0.8, 1], [0.3, 0]]))
    assert said["related"].rows[:, 2] == pytest.approx(-np.log([0.8, 0.7]))
    assert said["relation"].rows[:, :2] == pytest.approx(np.array([[0.6, 1], [0.15, 0]]))
    confidence, hit, nll, brier = said["predicate"].rows[0]
    assert (confidence, hit) == (pytest.approx(0.75), 1)
    assert nll == pytest.approx(-(np.log(0.125) + 2 * np.log(0.75)) / 3)
    assert brier == pytest.approx((0.125 - 1 / 3) ** 2 + 0.125**2 + (0.75 - 2 / 3) ** 2)
    assert said["labels"].rows[:, :2] == pytest.approx(np.array([[0.6, 1], [1, 0]]))
    assert "labels" not in questions([found], [truth], "predcls")


@pytest.mark.parametrize("width", [False, True])
def test_the_error_is_the_gap_in_every_bin(width):
    p = np.sort(np.random.default_rng(0).random(30_000))
    rng = np.random.default_rng(1)
    right = (rng.random(len(p)) < p).astype(float)
    bold = (rng.random(len(p)) < 0.5 + 0.5 * (p - 0.5)).astype(float)
    assert calibration_error(p, right, width) < 0.02
    assert calibration_error(p, bold, width) == pytest.approx(0.125, abs=0.01)  # the mean of |p - 1/2| / 2


def test_chance_is_what_right_probabilities_reach():
    rng = np.random.default_rng(2)
    p = rng.random(2000)
    image = np.arange(2000) // 10
    right = Said.yes_or_no(p, (rng.random(2000) < p).astype(float), image)
    wrong = Said.yes_or_no(p, (rng.random(2000) < p**3).astype(float), image)
    assert figures(right)["ECE"] < 1.2 * figures(right)["chance"]
    assert figures(wrong)["ECE"] > 2 * figures(wrong)["chance"]
    better = Said.yes_or_no(p**3, wrong.rows[:, 1], image)
    value, low, high = gains(wrong, better)["NLL"]
    assert low > 0
    assert low < value < high


def test_a_model_from_end_to_end(capsys):
    graphs = random_graphs((5,) * 50, seed=3)
    entry = measure("tiny", [Part(small_model("baseline"), graphs[25:], graphs[:25])], "sgcls")
    assert set(entry["questions"]) == {"related", "predicate", "relation", "labels"}
    assert entry["questions"]["related"]["n"] == 25 * 20
    assert entry["questions"]["relation"]["after"]["NLL"] < entry["questions"]["relation"]["before"]["NLL"]
    assert "| labels | 125 |" in capsys.readouterr().out


def test_folds_are_fitted_to_the_others():
    graphs = random_graphs((5,) * 90, seed=3)
    parts = [Part(small_model("baseline", seed=k), graphs[30 * k : 30 * k + 30]) for k in range(3)]
    fitted = fit(parts, "predcls")
    assert len(fitted) == 4  # and one for a model of all images
    # Images of the first part don't change what is fitted for it.
    parts[0] = Part(parts[0].model, random_graphs((5,) * 30, seed=8))
    again = fit(parts, "predcls")
    assert again[0] == fitted[0]
    assert again[1] != fitted[1]
