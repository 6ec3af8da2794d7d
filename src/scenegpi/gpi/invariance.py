r"""Is a model graph-permutation invariant? Relabel the nodes and see whether the labels follow.

.. math:: \max_{\sigma} \, \lVert F(\sigma(z)) - \sigma(F(z)) \rVert_\infty

Works on any callable, GPI by construction or not. Nodes are permuted within their graph, the edges move along with
their features, and the list of edges is shuffled as well.
"""

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from scenegpi.gpi.flat import FlatGraph

__all__ = ["Break", "assert_invariant", "permutation_breaks", "permutation_gap"]

Level = Literal["node", "edge", "graph"]


class Break(NamedTuple):
    """The largest change of one output in one relabelling: which output, where, from what to what."""

    gap: float
    output: str
    level: Level
    place: str
    expected: float
    found: float
    trial: int
    order: list[int]

    def __str__(self) -> str:
        order = ", ".join(map(str, self.order[:12])) + (", ..." if len(self.order) > 12 else "")
        return (
            f"output {self.output} ({self.level} level) changes by {self.gap:.3g} at {self.place}: "
            f"{self.expected:.6g} becomes {self.found:.6g} when nodes are listed as [{order}] (trial {self.trial})"
        )


def permutation_gap(model: Callable[..., Any], graph: Any, trials: int = 8, *, seed: int = 0) -> float:
    """The largest change of any output of ``model`` under ``trials`` random relabellings of the graph's nodes.

    ``graph``: a :class:`FlatGraph`, a PyG ``Data`` or ``Batch``. The model is called with its tensors as keywords
    (``x``, ``edge_index`` and, where present, ``edge_attr``, ``batch``, ``x_class``, ``edge_class``) and gives a
    tensor or any nesting of tuples, lists and dicts of tensors. An output with one row a node, edge or graph must
    permute accordingly; a name that contains "edge", "node" or "graph" decides where the number of rows does not.
    """
    return max((found.gap for found in permutation_breaks(model, graph, trials, seed=seed)), default=0.0)


def assert_invariant(
    model: Callable[..., Any], graph: Any, trials: int = 8, *, tolerance: float = 1e-5, seed: int = 0
) -> None:
    """Raises ``AssertionError`` that says where the outputs changed by more than ``tolerance``, and by how much."""
    worst = max(permutation_breaks(model, graph, trials, seed=seed), key=lambda found: found.gap, default=None)
    if worst is not None and not worst.gap <= tolerance:
        raise AssertionError(f"not permutation invariant (tolerance {tolerance:g}): {worst}")


def permutation_breaks(model: Callable[..., Any], graph: Any, trials: int = 8, *, seed: int = 0) -> Iterator[Break]:
    """For every trial and every output, where it changed the most. NaN in one run only counts as inf."""
    flat = FlatGraph.of(graph)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        expected = dict(_leaves("", model(**flat.tensors())))
        for trial in range(trials):
            order = _order_within_graphs(flat, generator)
            edge_order = torch.randperm(flat.edge_index.shape[1], generator=generator)
            edge_order = edge_order.to(flat.edge_index.device)
            found = dict(_leaves("", model(**flat.relabel(order, edge_order).tensors())))
            if expected.keys() != found.keys():
                raise ValueError(f"outputs {sorted(expected)} became {sorted(found)} when nodes were relabelled")
            for name, before in expected.items():
                level = _level(name, before, flat)
                rows = {"node": order, "edge": edge_order, "graph": None}[level]
                moved = before if rows is None else before[rows]
                yield _compare(name, level, moved, found[name], flat, rows, trial, order)


def _compare(
    name: str,
    level: Level,
    expected: Tensor,
    found: Tensor,
    flat: FlatGraph,
    rows: Tensor | None,
    trial: int,
    order: Tensor,
) -> Break:
    label = name or "(the only one)"
    if expected.shape != found.shape:
        shapes = f"shape {tuple(expected.shape)} became {tuple(found.shape)}"
        return Break(torch.inf, label, level, shapes, torch.nan, torch.nan, trial, order.tolist())
    if not expected.numel():
        return Break(0.0, label, level, "nowhere", 0.0, 0.0, trial, order.tolist())
    rows_count = expected.shape[0] if expected.dim() else 1
    before, after = (value.double().reshape(rows_count, -1) for value in (expected, found))
    # Equal infinities and NaN in the same place are no change; any other non-finite difference is.
    same = (before == after) | (before.isnan() & after.isnan())
    change = torch.where(same, 0.0, (before - after).abs()).nan_to_num(nan=torch.inf)
    worst = int(change.argmax())
    row, column = divmod(worst, before.shape[1])
    old = row if rows is None else int(rows[row])
    place = f"{level} {old}"
    if level == "edge":
        source, target = flat.edge_index[:, old].tolist()
        place = f"edge {old} ({source} -> {target})"
    if before.shape[1] > 1:
        place += f", feature {column}"
    values = float(before[row, column]), float(after[row, column])
    return Break(float(change.reshape(-1)[worst]), label, level, place, *values, trial, order.tolist())


def _order_within_graphs(flat: FlatGraph, generator: torch.Generator) -> Tensor:
    count = flat.x.shape[0]
    order = torch.randperm(count, generator=generator).to(flat.x.device)
    return order if flat.batch is None else order[torch.argsort(flat.batch[order], stable=True)]


def _leaves(name: str, output: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(output, Tensor):
        yield name, output
        return
    if isinstance(output, dict):
        items = list(output.items())
    elif hasattr(output, "_fields"):
        items = list(zip(output._fields, output, strict=True))
    elif isinstance(output, list | tuple):
        items = list(enumerate(output))
    else:
        return
    for key, value in items:
        yield from _leaves(f"{name}.{key}" if name else str(key), value)


def _level(name: str, value: Tensor, flat: FlatGraph) -> Level:
    counts: dict[Level, int] = {
        "node": flat.x.shape[0],
        "edge": flat.edge_index.shape[1],
        "graph": flat.num_graphs,
    }
    rows = value.shape[0] if value.dim() else 1
    fitting: list[Level] = [level for level, count in counts.items() if count == rows]
    for level in fitting:
        if level in name:
            return level
    if fitting:
        return fitting[0]
    if not value.dim() or rows == 1:
        return "graph"
    raise ValueError(f"output {name or 'of the model'} has {rows} rows: neither nodes, edges nor graphs ({counts})")
