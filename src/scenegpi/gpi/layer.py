r"""The GPI layer: Theorem 1 for joint node and edge labels.

.. math::
    s_i &= \sum_{j \in N(i)} \phi(z_i, z_{ij}, z_j), \qquad g = \sum_i \alpha(z_i, s_i) \\
    y_k &= \rho(z_k, s_k, g), \qquad y_{ij} = \rho'(z_i, z_j, s_i, s_j, z_{ij}, g)

``strict=True`` leaves :math:`s` out of both rho: exactly the theorem. Either sum may be a mean,
a maximum or an attention.

Direction. An edge is a column of ``edge_index``; its node i is the one that aggregates, and ``edge_attr`` holds
:math:`z_{ij}`. As in PyG, ``flow="source_to_target"`` (default) makes i the target, ``edge_index[1]``;
``flow="target_to_source"`` makes i the source, ``edge_index[0]``. A scene graph lists (subject, object) and its
subject aggregates: ``flow="target_to_source"``, so that i is the subject, j the object, z_ij their relation.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from torch import Tensor, nn

from scenegpi.gpi.chunks import EdgeChunks
from scenegpi.gpi.dropout import dropout
from scenegpi.gpi.features import LazyFeatures, TableFeatures
from scenegpi.gpi.flat import FlatGraph
from scenegpi.gpi.networks import MLP, Dense
from scenegpi.gpi.segments import Aggregation, aggregate, score_width
from scenegpi.gpi.split import Part, on_edges, on_nodes


class GPIOutput(NamedTuple):
    """The output of a layer for N nodes, E edges (in the order of ``edge_index``) and G graphs.

    ``nodes (N, node_out)``; ``edges (E, edge_out)`` or None; ``graph (G, alpha_dim)`` is g; ``neighbourhood
    (N, phi_dim)`` is s; ``node_gate (N, 1)`` and ``edge_gate (E, 1)`` in (0, 1) with ``gate=True``; ``edge_attention
    (E, 1 or phi_dim)`` and ``node_attention (N, 1 or alpha_dim)`` with ``return_attention=True``.
    """

    nodes: Tensor
    edges: Tensor | None
    graph: Tensor
    neighbourhood: Tensor
    node_gate: Tensor | None = None
    edge_gate: Tensor | None = None
    edge_attention: Tensor | None = None
    node_attention: Tensor | None = None


class GPILayer(nn.Module):
    """Labels the nodes, and with ``edge_out`` also the edges, of a batch of graphs.

    Networks left out are the paper's: phi, alpha and the attention networks one fully-connected layer, rho
    ``rho_hidden`` hidden layers. A module given instead reads one concatenated tensor ``(M, sum of parts)`` and gives
    ``(M, width)``:

    ============  ===================================  ==========
    network       reads                                gives
    ============  ===================================  ==========
    phi           z_i, z_ij, z_j                       phi_dim
    beta          z_i, z_ij, z_j                       1 or phi_dim
    alpha         z_i, s_i                             alpha_dim
    gamma         z_i, s_i                             1 or alpha_dim
    rho           z_k, s_k, g                          node_out
    edge_rho      z_i, z_j, s_i, s_j, z_ij, g          edge_out
    ============  ===================================  ==========

    beta and gamma score the attention over neighbours and over nodes. With ``strict`` rho and edge_rho read no s.
    ``x_table (C, w)`` and ``edge_table (C, w)`` are word tables: a row, chosen by ``x_class (N,)`` or ``edge_class
    (E,)``, is appended to z; they are buffers, not trained.
    """

    x_table: Tensor | None
    edge_table: Tensor | None

    def __init__(
        self,
        node_dim: int,
        edge_dim: int,
        node_out: int,
        edge_out: int | None = None,
        *,
        hidden: int = 500,
        phi_dim: int | None = None,
        alpha_dim: int | None = None,
        rho_hidden: tuple[int, ...] | None = None,
        aggregation: Aggregation = "sum",
        node_aggregation: Aggregation | None = None,
        strict: bool = False,
        gate: bool = False,
        dropout: float = 0.0,
        flow: Literal["source_to_target", "target_to_source"] = "source_to_target",
        chunk_edges: int | None = None,
        x_table: Tensor | None = None,
        edge_table: Tensor | None = None,
        phi: nn.Module | None = None,
        alpha: nn.Module | None = None,
        rho: nn.Module | None = None,
        edge_rho: nn.Module | None = None,
        beta: nn.Module | None = None,
        gamma: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if flow not in ("source_to_target", "target_to_source"):
            raise ValueError(f"flow must be 'source_to_target' or 'target_to_source', not {flow!r}")
        self.register_buffer("x_table", x_table)
        self.register_buffer("edge_table", edge_table)
        d = node_dim + (0 if x_table is None else x_table.shape[1])
        e = edge_dim + (0 if edge_table is None else edge_table.shape[1])
        s, g = phi_dim or hidden, alpha_dim or hidden
        widths = (hidden,) * 3 if rho_hidden is None else rho_hidden
        self.node_dim, self.edge_dim = node_dim, edge_dim
        self.strict, self.flow, self.dropout, self.chunk_edges = strict, flow, dropout, chunk_edges
        self.aggregation: Aggregation = aggregation
        self.node_aggregation: Aggregation = node_aggregation or aggregation
        pair, near = (d, e, d), (d, s)
        node_parts = (d, g) if strict else (d, s, g)
        edge_parts = (d, d, e, g) if strict else (d, d, s, s, e, g)
        scores, node_scores = score_width(self.aggregation, s), score_width(self.node_aggregation, g)
        self.phi = phi or Dense(pair, s)
        self.beta = (beta or Dense(pair, scores, "none")) if scores else None
        self.alpha = alpha or Dense(near, g)
        self.gamma = (gamma or Dense(near, node_scores, "none")) if node_scores else None
        self.rho = rho or MLP(node_parts, widths, node_out, dropout)
        self.edge_rho = None if edge_out is None else edge_rho or MLP(edge_parts, widths, edge_out, dropout)
        self.node_gate = Dense(node_parts, 1, "none") if gate else None
        self.edge_gate = Dense(edge_parts, 1, "none") if gate and edge_out is not None else None

    def forward(
        self,
        x: Any,
        edge_index: Tensor | None = None,
        edge_attr: Tensor | LazyFeatures | None = None,
        batch: Tensor | None = None,
        *,
        x_class: Tensor | None = None,
        edge_class: Tensor | None = None,
        num_graphs: int | None = None,
        return_attention: bool = False,
    ) -> GPIOutput:
        """x ``(N, node_dim)``, edge_index ``(2, E)``, edge_attr ``(E, edge_dim)``, batch ``(N,)``.

        Or one object with these attributes: a :class:`FlatGraph`, a PyG ``Data`` or ``Batch``. Without ``batch`` all
        nodes are one graph; ``num_graphs`` is only needed where ``batch`` can't tell it: last graphs empty, export.
        If no gradient is needed, the edges of a large graph may come as :class:`LazyFeatures`.
        """
        if not isinstance(x, Tensor):
            return self(**FlatGraph.of(x).tensors(), num_graphs=num_graphs, return_attention=return_attention)
        if edge_index is None:
            raise TypeError("edge_index is missing: give (x, edge_index, ...) or one graph object")
        if edge_attr is None:
            edge_attr = x.new_zeros(edge_index.shape[1], 0)
        self._check(x, edge_index, edge_attr if isinstance(edge_attr, Tensor) else edge_attr.make(edge_index[0, :0]))
        if batch is None:
            batch, num_graphs = edge_index.new_zeros(x.shape[0]), 1
        elif num_graphs is None:
            num_graphs = int(batch.max()) + 1 if batch.numel() else 0
        x = dropout(x, self.dropout, self.training)
        z = TableFeatures.of(x, x_class, self.x_table, "x_class")
        z_edge = self._edges(edge_attr, edge_class)
        i, j = edge_index.flip(0) if self.flow == "source_to_target" else edge_index
        chunks = EdgeChunks.cut(i, j, z_edge, x.shape[0], self.chunk_edges)

        s, edge_weights = self._neighbourhood(z, z_edge, chunks, return_attention)
        near = [z, TableFeatures(s)]
        scores = None if self.gamma is None else on_nodes(self.gamma, near)
        alpha = on_nodes(self.alpha, near)
        g, node_weights = aggregate(self.node_aggregation, alpha, scores, batch, num_graphs, return_attention)

        context = TableFeatures(g.index_select(0, batch))
        whole = [z, context] if self.strict else [*near, context]
        nodes = on_nodes(self.rho, whole)
        node_gate = None if self.node_gate is None else on_nodes(self.node_gate, whole).sigmoid_()
        edges, edge_gate = self._edge_labels(z, TableFeatures(s), context, z_edge, chunks)
        return GPIOutput(nodes, edges, g, s, node_gate, edge_gate, edge_weights, node_weights)

    def _check(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> None:
        # Widths are fixed when a program is traced, so the check costs nothing there.
        if edge_index.dim() != 2 or edge_index.shape[0] != 2:
            raise ValueError(f"edge_index must be (2, E), not {tuple(edge_index.shape)}")
        for name, value, rows, width in (("x", x, "N", self.node_dim), ("edge_attr", edge_attr, "E", self.edge_dim)):
            if value.dim() != 2 or value.shape[1] != width:
                raise ValueError(f"{name} must be ({rows}, {width}), not {tuple(value.shape)}")

    def _edges(self, edge_attr: Tensor | LazyFeatures, edge_class: Tensor | None) -> TableFeatures:
        """z_ij of all edges."""
        if isinstance(edge_attr, LazyFeatures):
            return replace(edge_attr, classes=edge_class, table=self.edge_table)
        edge_attr = dropout(edge_attr, self.dropout, self.training)
        return TableFeatures.of(edge_attr, edge_class, self.edge_table, "edge_class")

    def _neighbourhood(
        self, z: TableFeatures, z_edge: TableFeatures, chunks: EdgeChunks, return_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        pair: list[Part] = [("i", z), ("edge", z_edge), ("j", z)]
        phi = on_edges(self.phi, pair)
        # A softmax over the neighbours of i cancels what all their scores have in common.
        beta = None if self.beta is None else on_edges(self.beta, pair, i_cancels=True)

        def part(i: Tensor, j: Tensor, edges: TableFeatures, index: Tensor, count: int) -> list[Tensor]:
            scores = None if beta is None else beta(i, j, edges)
            s, weights = aggregate(self.aggregation, phi(i, j, edges), scores, index, count, return_weights)
            return [s] if weights is None else [s, weights]

        s, *weights = chunks.run(part, nodes=True)
        return s, weights[0] if weights else None

    def _edge_labels(
        self, z: TableFeatures, s: TableFeatures, context: TableFeatures, z_edge: TableFeatures, chunks: EdgeChunks
    ) -> tuple[Tensor | None, Tensor | None]:
        if self.edge_rho is None:
            return None, None
        near: list[Part] = [] if self.strict else [("i", s), ("j", s)]
        parts: list[Part] = [("i", z), ("j", z), *near, ("edge", z_edge), ("i", context)]
        rho = on_edges(self.edge_rho, parts)
        gate = None if self.edge_gate is None else on_edges(self.edge_gate, parts)

        def part(i: Tensor, j: Tensor, edges: TableFeatures, *_: Any) -> list[Tensor]:
            labels = rho(i, j, edges)
            return [labels] if gate is None else [labels, gate(i, j, edges).sigmoid_()]

        labels, *gates = chunks.run(part)
        return labels, gates[0] if gates else None


@contextmanager
def recorded_attention(model: nn.Module) -> Iterator[list[GPIOutput]]:
    """The outputs, weights included, of every call of every GPI layer in `model`, in the order of the calls.

    A model does not pass ``return_attention`` on to its layers, so hooks ask each layer for its weights and keep them.

    >>> with recorded_attention(model) as calls:
    ...     model(batch)
    >>> calls[-1].edge_attention    # (E, 1) or (E, phi_dim), sums to one over the neighbours of each node
    """
    calls: list[GPIOutput] = []

    def ask(layer: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return args, {**kwargs, "return_attention": True}

    def keep(layer: nn.Module, args: Any, output: GPIOutput) -> None:
        if not calls or calls[-1] is not output:  # a layer that is given a graph object calls itself
            calls.append(output)

    hooks = []
    for layer in model.modules():
        if isinstance(layer, GPILayer):
            hooks += [layer.register_forward_pre_hook(ask, with_kwargs=True), layer.register_forward_hook(keep)]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
