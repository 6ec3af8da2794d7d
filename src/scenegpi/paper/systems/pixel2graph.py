r"""Pixel2Graph (Newell and Deng 2017) with given boxes: the layout as a picture, a graph read from its cells.

The boxes of an image are drawn on a grid: the filled box times a vector of its label, and its centre times another.
An hourglass turns the picture into features; at a cell, slots say

- at the centre of a box: its tag (and a correction of its label), a slot for each box that lies there, by size;
- at the middle of two boxes: is there a relation, which predicate, and the tags of its subject and its object.

A slot belongs to the pair of boxes whose tags are nearest (:mod:`tags`):

.. math:: P(\text{related}_{ij}) = \max_{\text{slots of } (i, j)} \sigma(H) \sigma(s), \qquad
          P(r \mid \text{related}) = \text{softmax of that slot}

Relations are read at the middle of *all* pairs, never at the places of the true ones. Its loss is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.nn.functional import cross_entropy, interpolate, logsigmoid, max_pool2d, softplus

from scenegpi.features.batch import SceneBatch
from scenegpi.gpi.networks import MLP
from scenegpi.models.config import ModelConfig
from scenegpi.models.network import SceneLogits
from scenegpi.options import bounded
from scenegpi.paper.systems.padding import Padding
from scenegpi.paper.systems.reader import Reading
from scenegpi.paper.systems.sequences import reading_order
from scenegpi.paper.systems.system import Answer, System, SystemConfig
from scenegpi.paper.systems.tags import match, nearest, push

TAGS = 8
"""Width of an associative embedding."""
OBJECT_SLOTS, RELATION_SLOTS = 3, 6
"""How many boxes, and relations, a cell can hold."""
APART = 8.0
"""Distance that the tags of different boxes should keep."""
UNSEEN = -18.0
"""Log-probability of a relation between boxes that no slot belongs to."""
SAMPLED = 200
"""Cells of a heatmap that are compared with the truth, besides the true ones."""


@dataclass(frozen=True)
class Pixel2GraphConfig(SystemConfig):
    """With given boxes, drawn as a picture.

    Args:
        grid: height and width of the picture, a power of two.
        channels, depth: of the hourglass.
    """

    kind: Literal["pixel2graph"] = "pixel2graph"
    grid: int = bounded(32, 4, 128)
    channels: int = bounded(32, 1, 256)
    depth: int = bounded(3, 1, 6)

    def __post_init__(self) -> None:
        if self.grid % 2**self.depth:
            raise ValueError(f"grid: {self.grid} cells cannot be halved {self.depth} times")

    def network(self, model: ModelConfig, labels: int, predicates: int, words: Sequence[Tensor]) -> System:
        return Pixel2Graph(model, self, labels, predicates)


PRESETS = {"pixel2graph-boxes": Pixel2GraphConfig()}


class Slots(NamedTuple):
    """Of Q cells with S slots each: `score` (Q, S), `classes` (Q, S, P), tags `subject` and `object` (Q, S, d)."""

    score: Tensor
    classes: Tensor
    subject: Tensor
    object: Tensor


class Hourglass(nn.Module):
    """Features at half, a quarter, an eighth of the size, and back up, each added to what had that size.

    (G, c, S, S) -> (G, c, S, S); S must be divisible by 2 ** depth.
    """

    def __init__(self, channels: int, depth: int) -> None:
        super().__init__()
        self.beside, self.down, self.up = (Residual(channels) for _ in range(3))
        self.inner: nn.Module = Hourglass(channels, depth - 1) if depth > 1 else Residual(channels)

    def forward(self, x: Tensor) -> Tensor:
        low = self.up(self.inner(self.down(max_pool2d(x, 2))))
        return self.beside(x) + interpolate(low, scale_factor=2.0, mode="nearest")


class Residual(nn.Module):
    """x + convolution(ReLU(x))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.convolution(x.relu())


class Pixel2Graph(System):
    """A picture of boxes -> tags, slots, relations."""

    probabilities, exportable = False, False

    def __init__(self, model: ModelConfig, config: Pixel2GraphConfig, labels: int, predicates: int) -> None:
        super().__init__(model, labels, predicates, embed=False)
        self.config = config
        c, d = config.channels, TAGS
        self.filled, self.centre = (nn.Parameter(torch.randn(labels, c) * 0.3) for _ in range(2))
        self.enter = nn.Conv2d(c, c, 3, padding=1)
        self.hourglass = Hourglass(c, config.depth)
        self.heat = nn.Conv2d(c, 2, 1)
        self.object_head = MLP([c], [4 * c], OBJECT_SLOTS * (d + labels))
        self.relation_head = MLP([c], [4 * c], RELATION_SLOTS * (1 + predicates + 2 * d))

    def answer(self, reading: Reading) -> Answer:
        batch = reading.batch
        features = self.hourglass(self.enter(self.draw(reading)))
        heat = self.heat(features).flatten(2)
        middle = self.centres(batch)
        cells = middle[:, 1] * self.config.grid + middle[:, 0]
        tags, nodes = self.objects(reading, features, cells)
        image, relation_cells = self.relation_cells(batch, middle, batch.edge_index)
        slots = self.slots(features, image, relation_cells)
        related = logsigmoid(heat[image, 1, relation_cells])[:, None] + logsigmoid(slots.score)
        pairs = self.decode(batch, image, related, slots, tags)
        return Answer(nodes, pairs, {"features": features, "heat": heat, "tags": tags})

    def draw(self, reading: Reading) -> Tensor:
        """The boxes as a picture (G, c, S, S)."""
        batch, size = reading.batch, self.config.grid
        places = Padding(batch.batch, batch.ptr)
        x1, y1, x2, y2 = self._cells(batch.boxes, batch).unbind(1)
        at = torch.arange(size, device=batch.boxes.device)
        columns = (at >= x1[:, None]) & (at <= x2[:, None])
        lines = (at >= y1[:, None]) & (at <= y2[:, None])
        inside = (lines[:, :, None] & columns[:, None]).flatten(1).to(reading.dist.dtype)
        middle = self.centres(batch)
        at = torch.arange(size * size, device=inside.device)
        point = (at == (middle[:, 1] * size + middle[:, 0])[:, None]).to(inside.dtype)
        picture = places.pad(reading.dist @ self.filled).transpose(1, 2) @ places.pad(inside)
        picture = picture + places.pad(reading.dist @ self.centre).transpose(1, 2) @ places.pad(point)
        return picture.unflatten(2, (size, size))

    def centres(self, batch: SceneBatch) -> Tensor:
        """The cell (N, 2), column and line, of the centre of each box."""
        middle = (batch.boxes[:, :2] + batch.boxes[:, 2:]) / 2
        return self._cells(middle.repeat(1, 2), batch)[:, :2]

    def objects(self, reading: Reading, features: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """Tags (N, d) and label corrections (N, C); boxes that share a cell take its slots by size, larger first."""
        batch, slots = reading.batch, OBJECT_SLOTS
        order = reading_order(batch, "size", reading.dist)
        key = (batch.batch * self.config.grid**2 + cells)[order]
        by_cell = torch.argsort(key, stable=True)
        every = key.new_zeros(batch.num_graphs * self.config.grid**2)
        count = every.index_add(0, key, torch.ones_like(key))
        first = (torch.cumsum(count, 0) - count)[key[by_cell]]
        place = torch.arange(cells.shape[0], device=cells.device)
        slot = torch.zeros_like(cells).index_copy(0, order[by_cell], (place - first) % slots)
        said = self.object_head(features.flatten(2)[batch.batch, :, cells]).unflatten(1, (slots, -1))
        mine = said[place, slot]
        return mine[:, :TAGS], mine[:, TAGS:]

    def relation_cells(self, batch: SceneBatch, middle: Tensor, pairs: Tensor) -> tuple[Tensor, Tensor]:
        """Image and cell (Q,) of the middles of pairs (2, M), each once, sorted."""
        cells = torch.zeros(batch.num_graphs * self.config.grid**2, dtype=torch.bool, device=middle.device)
        key = cells.index_fill(0, self._keys(batch, middle, pairs), True).nonzero().flatten()
        return torch.div(key, self.config.grid**2, rounding_mode="floor"), key % self.config.grid**2

    def slots(self, features: Tensor, image: Tensor, cells: Tensor) -> Slots:
        """What the relation slots of cells (Q,) say."""
        d, predicates = TAGS, self.num_classes - 1
        said = self.relation_head(features.flatten(2)[image, :, cells]).unflatten(1, (RELATION_SLOTS, -1))
        score, classes, subject, object_ = said.split([1, predicates, d, d], 2)
        return Slots(score.squeeze(2), classes, subject, object_)

    def decode(self, batch: SceneBatch, image: Tensor, related: Tensor, slots: Slots, tags: Tensor) -> Tensor:
        """Log-probabilities (E, 1 + P); related (Q, S) log P(related) of each slot."""
        edges, predicates = batch.num_edges, self.num_classes - 1
        out = torch.cat([related.new_zeros(edges, 1), related.new_full((edges, predicates), UNSEEN)], 1)
        of = image[:, None].expand_as(related).flatten()
        with torch.no_grad():
            i, j = (nearest(part.flatten(0, 1), of, tags, batch) for part in (slots.subject, slots.object))
        real = (i != j).nonzero().flatten()
        size, start = (batch.ptr[1:] - batch.ptr[:-1])[of[real]], batch.ptr[of[real]]
        a, b = i[real] - start, j[real] - start
        edge = batch.edge_ptr[of[real]] + a * (size - 1) + b - (b > a).long()
        score = related.flatten()[real]
        # The best slot of a pair comes last, and is the one that stays.
        order = torch.argsort(score, stable=True)
        order = order[torch.argsort(edge[order], stable=True)]
        edge_in_turn = torch.cat([edge[order], edge.new_full((1,), -1)])
        chosen = order[edge_in_turn[1:] != edge_in_turn[:-1]]
        p = score[chosen, None]
        none = torch.log1p(-p.exp().clamp_max(1 - 1e-6))
        logits = torch.cat([none, p + slots.classes.flatten(0, 1)[real[chosen]].log_softmax(1)], 1)
        return out.index_put((edge[chosen],), logits)

    def training_loss(self, batch: SceneBatch, out: SceneLogits, common: Tensor) -> Tensor:
        """Heatmaps, slots, classes, pull and push; labels where they are not given. The common loss is not used."""
        if out.extra is None:
            return common * 0
        features, heat, tags = out.extra["features"], out.extra["heat"], out.extra["tags"]
        middle = self.centres(batch)
        loss = push(tags, batch, APART)
        cells = middle[:, 1] * self.config.grid + middle[:, 0]
        loss = loss + self._heat(heat[:, 0], batch.batch, cells)
        loss = loss.index_add(0, batch.batch, cross_entropy(out.nodes[-1], batch.labels, reduction="none"))
        pairs = batch.edge_index[:, batch.relation_edge]
        if pairs.shape[1]:
            image, true = self.relation_cells(batch, middle, pairs)
            loss = loss + self._heat(heat[:, 1], image, true)
            loss = loss + self._relations(batch, self._keys(batch, middle, pairs), image, true, features, tags)
        return loss / batch.num_graphs

    def _relations(
        self, batch: SceneBatch, keys: Tensor, image: Tensor, cells: Tensor, features: Tensor, tags: Tensor
    ) -> Tensor:
        """Of the slots at the true cells (Q,): score, class and pull, (G,); keys (M,) the cell of each true row."""
        most = RELATION_SLOTS
        slots = self.slots(features, image, cells)
        known = image * self.config.grid**2 + cells
        cell = torch.searchsorted(known, keys)
        by_cell = torch.argsort(cell, stable=True)
        place = torch.empty_like(cell)
        place[by_cell] = torch.arange(len(cell), device=cell.device) - torch.searchsorted(cell[by_cell], cell[by_cell])
        row = (place < most).nonzero().flatten()  # a cell that is full holds no more
        at, place = cell[row], place[row]
        i, j = tags[batch.edge_index[:, batch.relation_edge[row]]]
        target = batch.relation_class[row] - 1
        with torch.no_grad():
            likely = slots.classes[at].softmax(2).gather(2, target[:, None, None].expand(-1, most, 1)).squeeze(2)
            far = (slots.subject[at] - i[:, None]).square().sum(2) + (slots.object[at] - j[:, None]).square().sum(2)
            gain = likely.new_zeros(len(cells), most, most)
            gain[at, place] = likely - far / (2 * APART**2)
            there = torch.zeros(len(cells), most, dtype=torch.bool, device=cells.device)
            there[at, place] = True
            slot = match(gain, there)[at, place]
        taken = torch.zeros_like(slots.score)
        taken[at, slot] = 1
        each = cross_entropy(slots.classes[at, slot], target, reduction="none")
        each = each + (slots.subject[at, slot] - i).square().sum(1) + (slots.object[at, slot] - j).square().sum(1)
        total = each.new_zeros(batch.num_graphs)
        total = total.index_add(0, image, bce(slots.score, taken, reduction="none").sum(1))
        return total.index_add(0, image[at], each)

    def _heat(self, heat: Tensor, image: Tensor, cells: Tensor) -> Tensor:
        """Binary cross-entropy (G,) of a heatmap (G, S * S) at the true cells and at some others."""
        true = torch.zeros_like(heat)
        true[image, cells] = 1
        some = torch.rand_like(heat) < SAMPLED / heat.shape[1]
        near = softplus(-heat) * true
        far = softplus(heat) * (some & (true == 0))
        return near.sum(1) + far.sum(1) * true.sum(1) / some.sum(1).clamp_min(1)

    def _keys(self, batch: SceneBatch, middle: Tensor, pairs: Tensor) -> Tensor:
        """(M,) image and cell of the middle of pairs (2, M), as one number."""
        i, j = pairs
        between = torch.div(middle[i] + middle[j], 2, rounding_mode="floor")
        return batch.batch[i] * self.config.grid**2 + between[:, 1] * self.config.grid + between[:, 0]

    def _cells(self, boxes: Tensor, batch: SceneBatch) -> Tensor:
        """Corners (N, 4) in pixels -> cells of the grid."""
        scale = self.config.grid / batch.sizes[batch.batch].to(boxes.dtype)
        return (boxes * scale.repeat(1, 2)).floor().long().clamp(0, self.config.grid - 1)
