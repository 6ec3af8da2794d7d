"""What a model is made of, as data: every choice a field with a default that works; a checkpoint carries it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scenegpi.options import bounded
from scenegpi.vision.config import VisionConfig

MAX_WIDTH = 1024


@dataclass(frozen=True)
class BaselineConfig:
    """The model without context: it reads each box, and each pair of boxes, by itself.

    Args:
        hidden, layers: of the network over pairs, and of the one over boxes. With 0 layers there is no network: the
            prior is passed on as it is, so that a context reads exactly the distributions of another system.
        embedding: width of the learned vector of a label; of a label distribution it is the mean.
        rank: width of the product of two such vectors, u_i * v_j, by which labels interact; 0 leaves it out.
        counts: the baseline itself reads the counts too. They depend on the other boxes: without them it reads each
            box, and each pair, by itself; a context reads them in any case.
        prior: what is known about a pair beforehand. Counts of predicates for its two labels: "backoff" (smoothed by
            what each label does alone) or "freq" (plain FREQ); "given", the pair distributions of another system
            that the graphs carry; or "none".
        smoothing: how many counts the back-off is worth.
        dropout, input_dropout: of hidden layers and of inputs.
        refine_labels: also correct the label distribution of each box (SGCls).
    """

    hidden: int = bounded(256, 1, MAX_WIDTH)
    layers: int = bounded(2, 0, 8)
    embedding: int = bounded(64, 1, MAX_WIDTH)
    rank: int = bounded(64, 0, MAX_WIDTH)
    counts: bool = True
    prior: Literal["backoff", "freq", "given", "none"] = "backoff"
    smoothing: float = bounded(3.0, 1e-3, 1e6)
    dropout: float = bounded(0.2, 0.0, 0.95)
    input_dropout: float = bounded(0.1, 0.0, 0.95)
    refine_labels: bool = True

    def __post_init__(self) -> None:
        if self.layers == 0 and self.prior == "none":
            raise ValueError("prior: without layers and without a prior nothing is left to predict from")


@dataclass(frozen=True)
class ContextConfig:
    """The GPI layer on top: what it aggregates, and how.

    The paper has hidden = phi = alpha = 500, three hidden layers in rho and steps = 2; an epoch of that costs five
    times as much.

    Args:
        aggregation: "sum" (no attention), "mean", "max", "neighbour" or "feature", over neighbours and over nodes.
        hidden, phi, alpha: widths of rho (two hidden layers), of s and of g.
        steps: of the recurrence.
        strict: exactly Theorem 1, rho does not read s.
        read_again: after the last step the baseline reads the pairs again, with the corrected labels. A predicate that
            was chosen for a wrong label is not kept when the label is corrected (SGCls); given labels change nothing.
        dropout, input_dropout: of hidden layers and of inputs.
        words: width of the word vectors of the most probable labels and predicates; 0 for none.
    """

    aggregation: Literal["sum", "mean", "max", "neighbour", "feature"] = "feature"
    hidden: int = bounded(256, 1, MAX_WIDTH)
    phi: int = bounded(128, 1, MAX_WIDTH)
    alpha: int = bounded(128, 1, MAX_WIDTH)
    steps: int = bounded(1, 1, 16)
    strict: bool = False
    read_again: bool = False
    dropout: float = bounded(0.2, 0.0, 0.95)
    input_dropout: float = bounded(0.1, 0.0, 0.95)
    words: int = bounded(0, 0, MAX_WIDTH)


@dataclass(frozen=True)
class ModelConfig:
    """A whole model; without `context` it is the baseline, without `vision` it reads boxes and labels only."""

    baseline: BaselineConfig = BaselineConfig()
    context: ContextConfig | None = None
    vision: VisionConfig | None = None
