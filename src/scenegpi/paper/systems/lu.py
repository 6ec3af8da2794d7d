r"""Visual module and language prior (Lu et al. 2016): each pair by itself, ranked by a product of two scores.

.. math::
    V_{ijk} &= z_k^\top f(u_{ij}) + s_k, \qquad
    F(a, k, b) = w_k^\top [\text{word}_a, \text{word}_b] + b_k, \qquad
    \text{score} = \max(V, 1)\, F \\
    \min\; & C + \lambda_1 L + \lambda_2 K

C ranks what was annotated above all else in the image, L what is frequent in training above what is rare, and K is the
variance of (F(R) - F(R'))^2 / d(R, R'), d the cosine distance of the words: similar relations, similar scores.

The maximum, which the released code takes, is smooth here: 1 + softplus(V). Scores become a distribution in a way that
keeps their order over the whole image, P(r) = sigma(score / tau) / P. P(label) of the original's V is not in here:
every system's triplets are ranked by P(subject) P(object) P(predicate).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, normalize, softplus

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi.dropout import dropout
from scenegpi.gpi.networks import MLP
from scenegpi.gpi.segments import segment_max, segment_sum
from scenegpi.models.config import MAX_WIDTH, ModelConfig
from scenegpi.models.scene_network import SceneLogits
from scenegpi.options import bounded
from scenegpi.paper.systems.reader import Reading
from scenegpi.paper.systems.system import DROPOUT, Answer, System, SystemConfig

SAMPLED = 1024
MARGIN = 1.0
TEMPERATURE = 4.0
"""Temperature by which scores become probabilities; it does not change their order."""
FREQUENCY, SIMILARITY = 0.05, 0.002
"""lambda_1 and lambda_2."""
SAME = 1e-3
"""Distance of relations with the same words."""
_LOW = -1e4


class LuVisual(System):
    """Pairs by their boxes alone: what later papers' tables show under the name of Lu et al."""

    def __init__(self, model: ModelConfig, config: LuConfig, labels: int, predicates: int) -> None:
        super().__init__(model, labels, predicates, embed=False)
        self.visual = MLP([self.reader.pair_width], [config.width], config.width, DROPOUT)
        self.pair_out = nn.Linear(config.width, 1 + predicates)

    def seen(self, reading: Reading, rows: slice) -> Tensor:
        """Scores of the pairs in `rows` by their boxes, (E, 1 + P); (E, P) with the language prior."""
        return self.pair_out(dropout(self.visual(reading.pairs(rows)).relu(), DROPOUT, self.training))

    def answer(self, reading: Reading) -> Answer:
        return Answer(
            torch.zeros_like(reading.node_logits), reading.over_pairs(lambda rows, i, j: self.seen(reading, rows))
        )


class Lu(LuVisual):
    """Visual score times language prior; label_words (C, w), predicate_words (1 + P, w)."""

    probabilities = False
    label_words: Tensor
    predicate_words: Tensor
    counts: Tensor
    known: Tensor

    def __init__(self, model: ModelConfig, config: LuConfig, labels: int, predicates: int, *words: Tensor) -> None:
        super().__init__(model, config, labels, predicates)
        self.config = config
        self.pair_out = nn.Linear(config.width, predicates)
        self.as_subject = nn.Linear(words[0].shape[1], predicates)
        self.as_object = nn.Linear(words[0].shape[1], predicates, bias=False)
        self.register_buffer("label_words", words[0])
        self.register_buffer("predicate_words", words[1])
        self.register_buffer("counts", torch.zeros(labels, labels, predicates), persistent=False)
        self.register_buffer("known", torch.zeros(0, 3, dtype=torch.long), persistent=False)

    def set_counts(self, counts: Tensor) -> None:
        """Remembers how often each triplet occurs in training, (C, C, P), and which do: rows (K, 3) of them."""
        self.counts = counts[:, :, 1:].to(self.counts)
        self.known = self.counts.nonzero()

    def answer(self, reading: Reading) -> Answer:
        subject, object_ = self.as_subject(self.label_words), self.as_object(self.label_words)

        def scores(rows: slice, i: Tensor, j: Tensor) -> Tensor:
            language = subject[reading.labels[i]] + object_[reading.labels[j]]
            return (MARGIN + softplus(self.seen(reading, rows))) * language

        found = reading.over_pairs(scores)
        return Answer(torch.zeros_like(reading.node_logits), self.logits(found), {"scores": found})

    def logits(self, scores: Tensor) -> Tensor:
        """scores (E, P) -> log-probabilities (E, 1 + P) in the same order over the whole image."""
        x = scores / TEMPERATURE
        every = torch.tensor(float(scores.shape[1]), device=scores.device).log()
        none = logsigmoid(-x).logsumexp(1, keepdim=True)
        return torch.cat([none, logsigmoid(x)], 1) - every

    def training_loss(self, batch: SceneBatch, out: SceneLogits, common: Tensor) -> Tensor:
        """C + lambda_1 L + lambda_2 K; the common loss is not used."""
        if out.extra is None:
            return common
        ranking = self.ranking(batch, out.extra["scores"])
        if not len(self.known):
            return ranking / batch.num_graphs
        first, second = self.sample(SAMPLED)
        frequency, similarity = self.frequency(first, second), self.similarity(first, second)
        return (ranking + FREQUENCY * frequency + SIMILARITY * similarity) / batch.num_graphs

    def ranking(self, batch: SceneBatch, scores: Tensor) -> Tensor:
        """C (G,): a hinge loss; annotated relations should beat the best unannotated one of their image by a margin."""
        row, column = batch.relation_edge, batch.relation_class - 1
        others = scores.index_put((row, column), scores.new_tensor(_LOW)).amax(1)
        if self.config.negatives == "none":
            annotated = torch.zeros_like(others, dtype=torch.bool)
            annotated[row] = True
            others = others.masked_fill(~annotated, _LOW)
        image = batch.batch[batch.edge_index[0]]
        best = segment_max(others, image, batch.num_graphs)
        loss = (MARGIN - scores[row, column] + best[image[row]]).clamp_min(0)
        return segment_sum(loss * batch.relation_count.to(loss.dtype), image[row], batch.num_graphs)

    def sample(self, count: int) -> tuple[Tensor, Tensor]:
        """Two lists of relations (count, 3): those of training, and any."""
        known = self.known
        first, other = (known[torch.randint(len(known), (count,), device=known.device)] for _ in range(2))
        drawn = torch.stack([torch.randint(size, (count,), device=known.device) for size in self.counts.shape], 1)
        swap = torch.rand(count, device=known.device) < 0.5  # half of the pairs are both of training
        return first, torch.where(swap[:, None], other, drawn)

    def language(self, relations: Tensor) -> Tensor:
        """F (M,) of relations (M, 3): subject, object, predicate."""
        a, b, k = relations.unbind(1)
        return self.as_subject(self.label_words)[a, k] + self.as_object(self.label_words)[b, k]

    def frequency(self, first: Tensor, second: Tensor) -> Tensor:
        """L: the more frequent of two relations should score higher by a margin; the mean over pairs that differ."""
        more = (self.counts[first.unbind(1)] - self.counts[second.unbind(1)]).sign()
        gap = (self.language(first) - self.language(second)) * more
        return ((MARGIN - gap).clamp_min(0) * more.abs()).sum() / more.abs().sum().clamp_min(1)

    def similarity(self, first: Tensor, second: Tensor) -> Tensor:
        """K: the variance of squared differences over distances."""
        words = normalize(self.label_words, dim=1), normalize(self.predicate_words[1:], dim=1)
        tables = (words[0], words[0], words[1])
        near = [(table[first[:, c]] * table[second[:, c]]).sum(1) for c, table in enumerate(tables)]
        distance = (3 - torch.stack(near).sum(0)).clamp_min(0) + SAME
        return ((self.language(first) - self.language(second)).square() / distance).var()


@dataclass(frozen=True)
class LuConfig(SystemConfig):
    """Visual module and language prior.

    Args:
        language: the prior by word vectors, and the ranking loss. Without, a classifier of pairs by their boxes alone:
            the network behind the row of this name in later papers' tables.
        words: width of the word vectors.
        negatives: what a true relation has to beat: the other annotated pairs only ("none"), as published, or all pairs
            of the image ("pairs").
    """

    kind: Literal["lu"] = "lu"
    width: int = bounded(256, 1, MAX_WIDTH)
    language: bool = True
    words: int = bounded(300, 1, MAX_WIDTH)
    negatives: Literal["none", "pairs"] = "pairs"

    def build(self, model: ModelConfig, labels: int, predicates: int, words: Sequence[Tensor]) -> System:
        if not self.language:
            return LuVisual(model, self, labels, predicates)
        return Lu(model, self, labels, predicates, *words)

    @property
    def word_width(self) -> int:
        return self.words if self.language else 0


PRESETS = {"lu": LuConfig(), "lu-visual": LuConfig(language=False)}
