"""The training recipe: batches, schedule, early stopping, and that it learns."""

import itertools

import pytest
import torch
from torch import Tensor, nn

from scenegpi.paper.labelling.graphs import Graphs, Task
from scenegpi.paper.labelling.models import GPI
from scenegpi.paper.labelling.training import Recipe, _batches, accuracy, evaluate, train

SMALL = Task(nodes=5, sets=2)


def test_batches_use_every_sample_once_an_epoch() -> None:
    torch.manual_seed(0)
    batches = _batches(10, 4)
    drawn = torch.cat([next(batches) for _ in range(5)])
    assert sorted(drawn[:10].tolist()) == list(range(10))
    assert sorted(drawn[10:].tolist()) == list(range(10))


def test_batches_may_be_larger_than_the_sample() -> None:
    torch.manual_seed(0)
    assert torch.bincount(next(_batches(3, 9))).tolist() == [3, 3, 3]


def test_rate_warms_up_and_falls_to_zero() -> None:
    recipe = Recipe(steps=500)
    rates = [recipe.rate(step) for step in range(501)]
    assert rates[0] == pytest.approx(1 / 50)
    assert max(rates) == rates[49] == rates[50] == 1.0
    assert rates[500] == pytest.approx(0)
    assert all(a >= b for a, b in itertools.pairwise(rates[50:]))


def test_accuracy_is_the_fraction_of_nodes() -> None:
    graphs = SMALL.sample(4, 0)
    scores = nn.functional.one_hot(graphs.labels, 5).float()
    assert accuracy(scores, graphs) == 1.0
    scores[0, 0] = nn.functional.one_hot((graphs.labels[0, 0] + 1) % 5, 5).float()
    assert accuracy(scores, graphs) == pytest.approx(19 / 20)


def test_labels_without_a_class_are_wrong() -> None:
    graphs = Task(nodes=6, sets=1, edge_probability=1.0).sample(3, 0)
    right, _ = evaluate(GPI(1, 3, hidden=8), graphs)
    assert right == 0.0


def test_a_small_network_learns_and_the_best_weights_are_kept() -> None:
    torch.manual_seed(0)
    model = GPI(2, 5, hidden=48)
    samples = SMALL.sample(300, 1)
    course = train(model, samples, Recipe(steps=500, batch=16, learning_rate=3e-3))
    right, loss = evaluate(model, samples[slice(60)])
    assert right == pytest.approx(course.best.accuracy)
    assert loss == pytest.approx(course.best.loss, rel=1e-4)
    assert course.best.accuracy == max(check.accuracy for check in course.checks)
    assert evaluate(model, SMALL.sample(200, 2))[0] > 0.97


def test_same_seed_same_course() -> None:
    courses = []
    for _ in range(2):
        torch.manual_seed(3)
        course = train(GPI(2, 5, hidden=8), SMALL.sample(50, 1), Recipe(steps=60, check_every=20))
        courses.append([(check.step, check.accuracy, check.loss) for check in course.checks])
    assert courses[0] == courses[1]


class _Frozen(nn.Module):
    """Always the same scores, whatever is trained."""

    def __init__(self, right: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.right = right
        self.seen: list[int] = []

    def forward(self, graphs: Graphs) -> Tensor:
        if self.training:
            self.seen += graphs.sets[:, 0].tolist()
        scores = 50.0 * nn.functional.one_hot(graphs.labels if self.right else graphs.labels * 0, 5)
        return scores + 0 * self.weight


def test_stops_when_solved() -> None:
    course = train(_Frozen(right=True), SMALL.sample(50, 0), Recipe(steps=1000, check_every=10))
    assert (course.reason, course.checks[-1].step) == ("solved", 10)


def test_stops_when_validation_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenegpi.paper.labelling.training.LEAST_STEPS", 0)
    recipe = Recipe(steps=1000, check_every=10)
    course = train(_Frozen(right=False), SMALL.sample(50, 0), recipe)
    assert (course.reason, course.best.step, course.checks[-1].step) == ("no better on validation", 10, 60)


def test_does_not_give_up_before_the_least_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenegpi.paper.labelling.training.LEAST_STEPS", 80)
    course = train(_Frozen(right=False), SMALL.sample(50, 0), Recipe(steps=1000, check_every=10))
    assert (course.reason, course.checks[-1].step) == ("no better on validation", 80)


def test_stops_at_the_last_step() -> None:
    course = train(_Frozen(right=False), SMALL.sample(50, 0), Recipe(steps=25, check_every=10))
    assert course.reason == "steps used up"
    assert [check.step for check in course.checks] == [10, 20, 25]


def test_validation_samples_are_not_trained_on() -> None:
    graphs = SMALL.sample(50, 0)
    numbered = Graphs(torch.arange(50)[:, None].expand(50, 5), graphs.adjacency, graphs.labels)
    model = _Frozen(right=False)
    train(model, numbered, Recipe(steps=40, batch=8, check_every=40))
    assert set(model.seen) == set(range(10, 50))


def test_too_few_samples_and_broken_losses_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 5 samples"):
        train(_Frozen(right=True), SMALL.sample(4, 0), Recipe())
    model = GPI(2, 5, hidden=8)
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))
    with pytest.raises(FloatingPointError, match="nan"):
        train(model, SMALL.sample(20, 0), Recipe())
