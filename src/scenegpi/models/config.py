"""What a model is made of, as data: every choice a field with a default that works; a checkpoint carries it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scenegpi.options import bounded
from scenegpi.vision.config import VisionConfig

WIDEST = 4096


@dataclass(frozen=True)
class BaselineConfig:
    """The model without context: it sees each box, and each pair of boxes, alone.

    Args:
        hidden, layers: of the network over pairs, and of the one over boxes. With 0 layers there is no network: the
            prior is handed on as it is, so that a context reads exactly the distributions of another system.
        embedding: width of the learned vector of a label; of a label distribution it is the mean.
        rank: width of the product of two such vectors, u_i * v_j, by which labels interact; 0 leaves it out.
        geometry: pair geometry among the inputs.
        entity: box and counts of each entity among the inputs.
        counts: the baseline itself reads the counts too. They tell of the other boxes: without them it sees each box,
            and each pair, quite alone; a context reads them in any case.
        prior: what is known about a pair beforehand. Counts of predicates for its two labels: "backoff" (smoothed by
            what each label does alone) or "freq" (plain FREQ); "given", the pair distributions of another system
            that the graphs carry; or "none".
        smoothing: how many counts the back-off is worth.
        leave_out: in training, an image's own relations do not count in the prior that the model reads for it.
        dropout, input_dropout: of hidden layers and of inputs.
        refine_labels: also correct the label distribution of each box (SGCls).
        looks: width of what pixels show of a pair (see `scenegpi.vision`); 0 for a model that sees none. Images without
            pixels have looks of 0 and a mark that says so, so one model serves both.
        look_hidden: width to which looks are brought before they meet the rest.
        look_dropout: of the looks.
    """

    hidden: int = bounded(256, 1, WIDEST)
    layers: int = bounded(2, 0, 8)
    embedding: int = bounded(64, 1, WIDEST)
    rank: int = bounded(64, 0, WIDEST)
    geometry: bool = True
    entity: bool = True
    counts: bool = True
    prior: Literal["backoff", "freq", "given", "none"] = "backoff"
    smoothing: float = bounded(3.0, 1e-3, 1e6)
    leave_out: bool = True
    dropout: float = bounded(0.2, 0.0, 0.95)
    input_dropout: float = bounded(0.1, 0.0, 0.95)
    refine_labels: bool = True
    looks: int = bounded(0, 0, 1 << 14)
    look_hidden: int = bounded(32, 1, WIDEST)
    look_dropout: float = bounded(0.3, 0.0, 0.95)

    def __post_init__(self) -> None:
        if self.layers == 0 and self.prior == "none":
            raise ValueError("prior: without layers and without a prior nothing is left to predict from")


@dataclass(frozen=True)
class ContextConfig:
    """The GPI layer on top: what it aggregates, how, and what it reads of the baseline.

    The paper has hidden = phi = alpha = 500, rho_layers = 3 and steps = 2; an epoch of that costs five times as much.

    Args:
        aggregation: "sum" (no attention), "mean", "max", "neighbour" or "feature", over neighbours and over nodes.
        hidden, phi, alpha: widths of rho, of s and of g.
        rho_layers: hidden layers of rho.
        steps: of the recurrence.
        activation: of phi and alpha.
        strict: exactly Theorem 1, rho does not see s.
        feedback: how a distribution is read: "scaled" (1 - log p / log 0.001, clamped to 0..1), "log_softmax" or
            "softmax".
        read_geometry: pair geometry among z_ij.
        read_hidden: the baseline's last hidden layer among z_ij.
        read_reverse: the baseline's distribution of the pair (j, i) among z_ij.
        read_again: after the last step the baseline reads the pairs again, with the corrected labels. A predicate that
            was chosen for a wrong label is not kept when the label is mended (SGCls); given labels change nothing.
        freeze: the baseline is trained first and then left as it is, as in the paper.
        dropout, input_dropout: of hidden layers and of inputs.
        second_choice: width of the network by which a pair turns to its next predicate; 0 leaves it out. With the
            coverage loss it raises recall and lowers what a pair by itself says correctly: see training.losses.
        words: width of the word vectors of the most probable labels and predicates; 0 for none.
        start_at_input: at first the layer changes nothing: its outputs are its inputs.
    """

    aggregation: Literal["sum", "mean", "max", "neighbour", "feature"] = "feature"
    hidden: int = bounded(256, 1, WIDEST)
    phi: int = bounded(128, 1, WIDEST)
    alpha: int = bounded(128, 1, WIDEST)
    rho_layers: int = bounded(2, 1, 8)
    steps: int = bounded(1, 1, 16)
    activation: Literal["relu", "none"] = "relu"
    strict: bool = False
    feedback: Literal["scaled", "log_softmax", "softmax"] = "scaled"
    read_geometry: bool = True
    read_hidden: bool = False
    read_reverse: bool = True
    read_again: bool = False
    freeze: bool = True
    dropout: float = bounded(0.2, 0.0, 0.95)
    input_dropout: float = bounded(0.1, 0.0, 0.95)
    second_choice: int = bounded(0, 0, WIDEST)
    words: int = bounded(0, 0, WIDEST)
    start_at_input: bool = True


@dataclass(frozen=True)
class ModelConfig:
    """A whole model; without `context` it is the baseline, without `vision` it sees no pixels."""

    baseline: BaselineConfig = BaselineConfig()
    context: ContextConfig | None = None
    vision: VisionConfig | None = None

    def __post_init__(self) -> None:
        if self.context is not None and self.context.read_hidden and self.baseline.layers == 0:
            raise ValueError("context.read_hidden: a baseline without layers has no hidden layer")
