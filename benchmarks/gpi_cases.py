"""What the speed benchmark runs: simulated images at the paper's sizes, every variant behind one call, and its cost.

Sizes: 150 entity classes, 50 predicates + "no relation", 14 static features and 300-d words, so 464-d nodes and 351-d
edges; 500-wide phi, alpha and feature attention, rho 3 x 500, two steps. Inputs are random: speed does not depend on
them.
"""

import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence

import gpi_oracle
from scenegpi.gpi import Dense, GPILayer, Recurrent, complete_edges

ENTITIES, PREDICATES, STATIC, WORDS, WIDTH, STEPS = 150, 51, 14, 300, 500, 2
MIX = (2, 3, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12, 13, 14, 16, 18, 21, 26, 35, 60)

Steps = tuple[list[Tensor], list[Tensor]]


def make_model(dense_words: bool = False, chunk_edges: int | None = None) -> Recurrent:
    """The linguistic predictor. ``dense_words``: word vectors as ordinary features instead of folded tables."""
    torch.manual_seed(0)
    tables = torch.randn(ENTITIES, WORDS) * 0.3, torch.randn(PREDICATES, WORDS) * 0.3
    words = WORDS if dense_words else 0
    layer = GPILayer(
        ENTITIES + STATIC + words,
        PREDICATES + words,
        ENTITIES,
        PREDICATES,
        hidden=WIDTH,
        aggregation="feature",
        gate=True,
        flow="target_to_source",
        x_table=None if dense_words else tables[0],
        edge_table=None if dense_words else tables[1],
        chunk_edges=chunk_edges,
    )
    if not dense_words:
        return Recurrent(layer, STEPS)
    _move_words(layer)
    by_width = {len(table): table for table in tables}

    def with_words(logits: Tensor) -> Tensor:
        return torch.cat([logits.log_softmax(1), by_width[logits.shape[1]][logits.argmax(1)]], 1)

    return Recurrent(layer, STEPS, with_words)


def _move_words(layer: GPILayer) -> None:
    # With tables a node is [labels, static, words], with dense words [labels, words, static]: the columns move along.
    labels, static, words = torch.arange(ENTITIES + STATIC + WORDS).split([ENTITIES, STATIC, WORDS])
    order = torch.cat([labels, words, static])
    for network in layer.modules():
        if isinstance(network, Dense):
            columns = [part[:, order] if part.shape[1] == len(order) else part for part in network.columns()]
            network.weight.data = torch.cat(columns, 1)


@dataclass
class Images:
    """A batch of images of the given sizes, as flat tensors and image by image."""

    sizes: Sequence[int]

    def __post_init__(self) -> None:
        generator = torch.Generator().manual_seed(1)
        count, edges = sum(self.sizes), sum(n * (n - 1) for n in self.sizes)
        self.nodes = torch.randn(count, ENTITIES, generator=generator)
        self.pairs = torch.randn(edges, PREDICATES, generator=generator)
        self.static = torch.randn(count, STATIC, generator=generator)
        self.node_labels = torch.randint(ENTITIES, (count,), generator=generator)
        self.pair_labels = torch.randint(PREDICATES, (edges,), generator=generator)
        self.edge_index = complete_edges(self.sizes)
        self.batch = torch.repeat_interleave(torch.tensor(self.sizes))
        self.masks = [~torch.eye(n, dtype=torch.bool) for n in self.sizes]

    def squares(self) -> list[Tensor]:
        """Each image's pair logits ``(n, n, R)``, zero on the diagonal."""
        parts = self.pairs.split([n * (n - 1) for n in self.sizes])
        return [_square(part, mask) for part, mask in zip(parts, self.masks, strict=True)]

    def loss(self, steps: Steps) -> Tensor:
        """Cross-entropy over all entities and relations, counted at every step."""
        return sum(
            4 * cross_entropy(nodes, self.node_labels) + cross_entropy(pairs, self.pair_labels)
            for nodes, pairs in zip(*steps, strict=True)
        )


def _square(part: Tensor, mask: Tensor) -> Tensor:
    square = part.new_zeros(*mask.shape, part.shape[1])
    square[mask] = part
    return square


def variant(name: str, images: Images) -> tuple[Recurrent, Callable[[], Steps]]:
    """A model and a call that gives flat logits of every step. Names: see ``VARIANTS``."""
    model = make_model(name == "ours, dense words", 4096 if name == "ours, chunked" else None)
    if name.startswith("ours"):
        run = torch.compile(model) if name == COMPILED else model

        def ours() -> Steps:
            flat = images.nodes, images.edge_index, images.pairs, images.batch
            out = run(*flat, node_static=images.static, num_graphs=len(images.sizes))
            return out.nodes, out.edges

        return model, ours
    squares = images.squares()
    if name == "per image":
        parts = list(zip(images.nodes.split(images.sizes), squares, images.static.split(images.sizes), strict=True))

        def loop() -> Steps:
            results = [gpi_oracle.per_image(model, *part) for part in parts]
            nodes = [torch.cat([result[0][t] for result in results]) for t in range(STEPS)]
            pairs = [
                torch.cat([r[1][t][mask] for r, mask in zip(results, images.masks, strict=True)]) for t in range(STEPS)
            ]
            return nodes, pairs

        return model, loop
    largest = max(images.sizes)
    padded = [pad_sequence(list(rows.split(images.sizes)), batch_first=True) for rows in (images.nodes, images.static)]
    grid = torch.zeros(len(images.sizes), largest, largest, PREDICATES)
    inside = torch.zeros(grid.shape[:3], dtype=torch.bool)
    for k, (square, mask) in enumerate(zip(squares, images.masks, strict=True)):
        n = len(mask)
        grid[k, :n, :n], inside[k, :n, :n] = square, mask
    present = torch.arange(largest) < torch.tensor(images.sizes).unsqueeze(1)

    def padded_call() -> Steps:
        nodes, pairs = gpi_oracle.padded_batch(model, padded[0], grid, padded[1], present)
        return [step[present] for step in nodes], [step[inside] for step in pairs]

    return model, padded_call


COMPILED = "ours, compiled"
VARIANTS = ("ours", COMPILED, "ours, dense words", "ours, chunked", "per image", "padded")


def multiply_adds(sizes: Sequence[int], dense_words: bool) -> tuple[float, float]:
    """The least that forward, and forward + backward, need: node products once a node, graph products once a graph.

    Backward: every product once more for its weight; once more for its input where a gradient is wanted (hidden
    layers, s and g always, of the features only the fed-back distributions, and those not in the first step).
    """
    n, e, graphs, h = sum(sizes), sum(k * (k - 1) for k in sizes), len(sizes), WIDTH
    d, r = ENTITIES + STATIC + WORDS * dense_words, PREDICATES + WORDS * dense_words
    on_nodes, on_edges = 8 * h + 2, 3 * h + 1  # phi i/j, beta j, alpha, gamma, rho, edge rho i/j and the gates
    tables = 0 if dense_words else WORDS * (min(ENTITIES, n) * on_nodes + min(PREDICATES, e) * on_edges)
    inner = n * (5 * h * h + 2 * h * h + h * ENTITIES) + graphs * 2 * h * h + e * (2 * h * h + h * PREDICATES)
    features = n * d * on_nodes + e * r * on_edges + tables
    forward = STEPS * (inner + features)
    fed_back = (STEPS - 1) * (n * ENTITIES * on_nodes + e * PREDICATES * on_edges)
    return float(forward), float(2 * forward + STEPS * inner + fed_back)


def peak_memory(name: str, sizes: Sequence[int], backward: bool, threads: int) -> tuple[float, float]:
    """MB by which one call raises the process's peak, and the whole peak. Run it in a fresh process."""
    torch.set_num_threads(threads)
    images = Images(sizes)
    _, call = variant(name, images)
    before = _high_water()
    with torch.set_grad_enabled(backward):
        steps = call()
        if backward:
            images.loss(steps).backward()
    peak = _high_water()
    return peak - before, peak


def _high_water() -> float:
    # Not ru_maxrss where it can be helped: a child process starts with the value of its parent.
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
