r"""Is a model graph-permutation invariant? Relabel the nodes and check that the labels follow.

.. math:: \max_{\sigma} \, \lVert F(\sigma(z)) - \sigma(F(z)) \rVert_\infty

Works on any callable, GPI by construction or not. Nodes are permuted within their graph, the edges move along with
their features, and the list of edges is shuffled as well.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from scenegpi.gpi.flat import FlatGraph


def permutation_gap(model: Callable[..., Any], graph: Any, trials: int = 8, *, seed: int = 0) -> float:
    """The largest change of any output of ``model`` under ``trials`` random relabellings of the graph's nodes.

    ``graph``: a :class:`FlatGraph`, a PyG ``Data`` or ``Batch``. The model is called with its tensors as keywords
    (``x``, ``edge_index`` and, where present, ``edge_attr``, ``batch``, ``x_class``, ``edge_class``) and gives a
    tensor or any nesting of tuples, lists and dicts of tensors. An output with one row per node, edge or graph must
    permute accordingly; a name that contains "edge", "node" or "graph" decides if the number of rows is ambiguous.
    """
    return max((gap for gap, _ in _changes(model, graph, trials, seed)), default=0.0)


def assert_invariant(
    model: Callable[..., Any], graph: Any, trials: int = 8, *, tolerance: float = 1e-5, seed: int = 0
) -> None:
    """Raises ``AssertionError`` if an output changed by more than ``tolerance``, saying where and by how much."""
    gap, where = max(_changes(model, graph, trials, seed), default=(0.0, ""))
    if not gap <= tolerance:
        raise AssertionError(f"not permutation invariant (tolerance {tolerance:g}): {where}")


def _changes(model: Callable[..., Any], graph: Any, trials: int, seed: int) -> Iterator[tuple[float, str]]:
    """For every trial and every output: its largest change, and where that is."""
    flat = FlatGraph.of(graph)
    device, generator = flat.x.device, torch.Generator().manual_seed(seed)
    with torch.no_grad():
        expected = dict(_leaves("", model(**flat.tensors())))
        for trial in range(trials):
            order = torch.randperm(len(flat.x), generator=generator).to(device)
            if flat.batch is not None:  # within their graphs
                order = order[torch.argsort(flat.batch[order], stable=True)]
            edge_order = torch.randperm(flat.edge_index.shape[1], generator=generator).to(device)
            found = dict(_leaves("", model(**flat.relabel(order, edge_order).tensors())))
            if expected.keys() != found.keys():
                raise ValueError(f"outputs {sorted(expected)} became {sorted(found)} when nodes were relabelled")
            listed = ", ".join(map(str, order[:12].tolist())) + (", ..." if len(order) > 12 else "")
            for name, before in expected.items():
                level = _level(name, before, flat)
                rows = {"node": order, "edge": edge_order}.get(level)
                gap, change = _change(level, before if rows is None else before[rows], found[name], flat, rows)
                output = f"output {name or '(the only one)'} ({level} level)"
                yield gap, f"{output} {change} when nodes are listed as [{listed}] (trial {trial})"


def _change(level: str, expected: Tensor, found: Tensor, flat: FlatGraph, rows: Tensor | None) -> tuple[float, str]:
    """The largest change of an output, and in words; NaN in one run only counts as inf."""
    if expected.shape != found.shape:
        return torch.inf, f"has shape {tuple(found.shape)}, not {tuple(expected.shape)},"
    if not expected.numel():
        return 0.0, "is empty"
    count = expected.shape[0] if expected.dim() else 1
    before, after = (value.double().reshape(count, -1) for value in (expected, found))
    # Equal infinities and NaN in the same place are no change; any other non-finite difference is.
    same = (before == after) | (before.isnan() & after.isnan())
    change = torch.where(same, 0.0, (before - after).abs()).nan_to_num(nan=torch.inf)
    row, column = divmod(int(change.argmax()), before.shape[1])
    old, gap = row if rows is None else int(rows[row]), float(change[row, column])
    place = f"{level} {old}"
    if level == "edge":
        place += " ({} -> {})".format(*flat.edge_index[:, old].tolist())
    if before.shape[1] > 1:
        place += f", feature {column}"
    return gap, f"changes by {gap:.3g} at {place}: {before[row, column]:.6g} becomes {after[row, column]:.6g}"


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


def _level(name: str, value: Tensor, flat: FlatGraph) -> str:
    counts = {"node": flat.x.shape[0], "edge": flat.edge_index.shape[1], "graph": flat.num_graphs}
    rows = value.shape[0] if value.dim() else 1
    fitting = [level for level, count in counts.items() if count == rows]
    if fitting:
        return next((level for level in fitting if level in name), fitting[0])
    if rows == 1:
        return "graph"
    raise ValueError(f"output {name or 'of the model'} has {rows} rows: neither nodes, edges nor graphs ({counts})")
