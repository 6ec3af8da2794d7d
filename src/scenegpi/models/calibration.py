r"""Calibrated probabilities: a model's last logits are tempered before they become distributions.

.. math::
    \text{odds}'_{ij} = \text{odds}_{ij} / T_e + b, \qquad
    P(r \mid \text{related}) = \text{softmax}_r(y_{ijr} / T_r), \qquad P(\text{label}) = \text{softmax}(y_i / T_l)

with odds the log-odds of "related" among the 1 + P classes of a pair. The four numbers are fitted to images that the
model was not trained on, by likelihood; a number that gains nothing beyond noise keeps its default. None of them
changes which predicate of a pair, or which label of a box, comes first. There are separate numbers for given labels
(PredCls) and predicted ones (SGCls): with labels that may be wrong, a predicate is less certain.

"Related" means annotated, and annotations are never complete: a calibrated 30% says that three in ten such relations
were annotated. A pair with k annotated predicates counts k times, as in training. So the probability of each predicate,
which users see, is the calibrated one; their sum, P(related), is the expected number of predicates, and a little above
the fraction of related pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from scenegpi.features.batch import SceneBatch, grouped
from scenegpi.graph import SceneGraph
from scenegpi.metrics.calibration import MAX_TEMPERATURE, MIN_TEMPERATURE, fit_convex, fit_temperature
from scenegpi.options import bounded

if TYPE_CHECKING:
    from scenegpi.models.build import SceneModel

Task = Literal["predcls", "sgcls"]
MAX_OFFSET = 20.0


@dataclass(frozen=True)
class Calibration:
    """Temperatures of a model. The defaults change nothing, not even a bit.

    Args:
        related: temperature T_e of the log-odds that a pair is related.
        offset: the term b added to them.
        predicates: temperature T_r of the predicates of a related pair.
        labels: temperature T_l of the corrected labels.
    """

    related: float = bounded(1.0, MIN_TEMPERATURE, MAX_TEMPERATURE)
    offset: float = bounded(0.0, -MAX_OFFSET, MAX_OFFSET)
    predicates: float = bounded(1.0, MIN_TEMPERATURE, MAX_TEMPERATURE)
    labels: float = bounded(1.0, MIN_TEMPERATURE, MAX_TEMPERATURE)

    def nodes(self, logits: Tensor) -> Tensor:
        """(N, C) logits -> distributions."""
        return (logits / self.labels).softmax(1)

    def edges(self, logits: Tensor) -> Tensor:
        """(E, 1 + P) logits -> distributions, column 0 "no relation"."""
        if (self.related, self.offset, self.predicates) == (1, 0, 1):
            return logits.softmax(1)
        return tempered_edges(logits, self.related, self.offset, self.predicates)

    def __str__(self) -> str:
        """A summary for a model card."""
        words = []
        if (self.related, self.offset) != (1, 0):
            words.append(f"related or not at temperature {self.related:.3g}, log-odds {self.offset:+.2f}")
        rest = (("predicates", self.predicates), ("labels", self.labels))
        words += [f"{name} at temperature {t:.3g}" for name, t in rest if t != 1]
        return ", ".join(words) or "as they come"


@dataclass(frozen=True)
class Calibrations:
    """The calibrations of a model for both tasks: labels given, and labels predicted."""

    predcls: Calibration = Calibration()
    sgcls: Calibration = Calibration()

    def of(self, task: Task) -> Calibration:
        return self.predcls if task == "predcls" else self.sgcls


class Outcomes(NamedTuple):
    """Raw logits of images, and their annotation.

    Pairs: `odds` (E,) and `related` (E,), those with k predicates k times. Boxes: `nodes` (N, C) and `labels` (N,). And
    the image of each, `pair_image` (E,), `node_image` (N,).
    """

    odds: Tensor
    related: Tensor
    pair_image: Tensor
    nodes: Tensor
    labels: Tensor
    node_image: Tensor


def tempered_edges(
    logits: Tensor, related: float | Tensor, offset: float | Tensor, predicates: float | Tensor
) -> Tensor:
    """(E, 1 + P) logits with T_e, b and T_r -> distributions, column 0 "no relation"."""
    odds = log_odds(logits)[:, None] / related + offset
    given_related = (logits[:, 1:] / predicates).softmax(1)
    return torch.cat([(-odds).sigmoid(), odds.sigmoid() * given_related], 1)


def log_odds(edges: Tensor) -> Tensor:
    """(E, 1 + P) logits -> (E,) log-odds of any relation."""
    return edges[:, 1:].logsumexp(1) - edges[:, 0]


def fit_calibrations(
    model: SceneModel, images: Sequence[SceneGraph], task: Literal["predcls", "sgcls", "both"]
) -> Calibrations:
    """Calibrations for the task that a model was trained for, or both; a single one is used for the other task too."""
    if task == "both":
        return Calibrations(fit_calibration(model, images, "predcls"), fit_calibration(model, images, "sgcls"))
    fitted = fit_calibration(model, images, task)
    return Calibrations(replace(fitted, labels=1.0), fitted)


def fit_calibration(model: SceneModel, images: Iterable[SceneGraph], task: Task) -> Calibration:
    """The calibration of a model on images that it was not trained on. Given labels (PredCls) need none."""
    return fit_outcomes(outcomes(model, images, task), labels=task == "sgcls")


def fit_outcomes(found: Outcomes, labels: bool = True) -> Calibration:
    """The maximum-likelihood numbers, each part separately.

    Predicates are not calibrated: several may be right for a pair, and a temperature that makes all of them likelier
    makes the first, which is the one shown, underconfident (docs/calibration.md).
    """
    related, offset = _fit_odds(found.odds, found.related, found.pair_image)
    fitted = Calibration(related, offset)
    return replace(fitted, labels=fit_temperature(found.nodes, found.labels, found.node_image)) if labels else fitted


def outcomes(model: SceneModel, images: Iterable[SceneGraph], task: Task) -> Outcomes:
    """A model's logits for images, before calibration, and their annotation."""
    training, first = model.training, 0
    model.eval()
    parts: list[Outcomes] = []
    try:
        for some in grouped(images):
            parts.append(_outcomes(model, SceneBatch.of(some, given_labels=task == "predcls"), first))
            first += len(some)
    finally:
        model.train(training)
    if not parts:
        raise ValueError("calibration needs images")
    return Outcomes(*(torch.cat(part) for part in zip(*parts, strict=True)))


def _outcomes(model: SceneModel, batch: SceneBatch, first: int) -> Outcomes:
    """The logits of one batch, whose images are numbered from `first`. Only the odds of unrelated pairs are kept."""
    with torch.no_grad():
        out = model(batch.to(model.device))
    row = batch.relation_edge  # each predicate of a pair once
    free = torch.ones(batch.num_edges, dtype=torch.bool)
    free[row] = False
    pair = torch.cat([free.nonzero().flatten(), row])
    image = first + batch.batch
    odds = log_odds(out.edges[-1].cpu())[pair]
    return Outcomes(odds, ~free[pair], image[batch.edge_index[0]][pair], out.nodes[-1].cpu(), batch.labels, image)


def _fit_odds(odds: Tensor, related: Tensor, image: Tensor) -> tuple[float, float]:
    """T and b of log-odds (E,)."""
    x, y = odds.double(), related.double()

    def loss(w: Tensor) -> Tensor:
        z = x * w[0] + w[1]
        return softplus(z) - y * z

    slope, offset = fit_convex(loss, (1.0, 0.0), image, 1 / MAX_TEMPERATURE)
    # If all are separable, or there is only one kind of outcome, there is no finite minimum.
    inside = slope <= 1 / MIN_TEMPERATURE and abs(offset) <= MAX_OFFSET
    return (1 / slope, offset) if inside else (1.0, 0.0)
