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

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from scenegpi.gpi.aggregate import Aggregation, aggregate, score_width
from scenegpi.gpi.features import Features
from scenegpi.gpi.flat import FlatGraph
from scenegpi.gpi.fused import fused_edge_labels, fused_neighbourhood
from scenegpi.gpi.networks import MLP, Activation, Dense
from scenegpi.gpi.plain import plain_edge_labels, plain_neighbourhood
from scenegpi.gpi.plan import EdgePlan

__all__ = ["GPILayer", "GPIOutput"]

# Edges walked at a time: few enough to stay in the cache, enough for full-speed products.
CACHE_EDGES = 512
# The fused form costs about a millisecond to set up: so many multiply-adds must be saved for it to pay.
WORTH_FUSING = 20_000_000


class GPIOutput(NamedTuple):
    """What a layer gives for N nodes, E edges (in the order of ``edge_index``) and G graphs.

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
        activation: Activation = "relu",
        strict: bool = False,
        gate: bool = False,
        dropout: float = 0.0,
        flow: Literal["source_to_target", "target_to_source"] = "source_to_target",
        chunk_edges: int | None = None,
        fused: bool | None = None,
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
        self.strict, self.flow, self.dropout = strict, flow, dropout
        self.chunk_edges, self.fused = chunk_edges, fused
        self.aggregation: Aggregation = aggregation
        self.node_aggregation: Aggregation = node_aggregation or aggregation
        pair, near = (d, e, d), (d, s)
        node_parts = (d, g) if strict else (d, s, g)
        edge_parts = (d, d, e, g) if strict else (d, d, s, s, e, g)
        scores, node_scores = score_width(self.aggregation, s), score_width(self.node_aggregation, g)
        self.phi = phi or Dense(pair, s, activation)
        self.beta = (beta or Dense(pair, scores, "none")) if scores else None
        self.alpha = alpha or Dense(near, g, activation)
        self.gamma = (gamma or Dense(near, node_scores, "none")) if node_scores else None
        self.rho = rho or MLP(node_parts, widths, node_out, dropout)
        self.edge_rho = None if edge_out is None else edge_rho or MLP(edge_parts, widths, edge_out, dropout)
        self._saved_by_fusing = 2 * d * s + (0 if edge_out is None else 2 * (d + s) * (*widths, 0)[0])  # an edge
        self.node_gate = Dense(node_parts, 1, "none") if gate else None
        self.edge_gate = Dense(edge_parts, 1, "none") if gate and edge_out is not None else None

    def forward(
        self,
        x: Any,
        edge_index: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        x_class: Tensor | None = None,
        edge_class: Tensor | None = None,
        num_graphs: int | None = None,
        plan: EdgePlan | None = None,
        return_attention: bool = False,
    ) -> GPIOutput:
        """x ``(N, node_dim)``, edge_index ``(2, E)``, edge_attr ``(E, edge_dim)``, batch ``(N,)``.

        Or one object with these attributes: a :class:`FlatGraph`, a PyG ``Data`` or ``Batch``. Without ``batch`` all
        nodes are one graph; ``num_graphs`` is only needed where ``batch`` can't tell it: last graphs empty, export.
        """
        if not isinstance(x, Tensor):
            flat = FlatGraph.of(x)
            return self(**flat.tensors(), num_graphs=num_graphs, plan=plan, return_attention=return_attention)
        if edge_index is None:
            raise TypeError("edge_index is missing: give (x, edge_index, ...) or one graph object")
        if edge_attr is None:
            edge_attr = x.new_zeros(edge_index.shape[1], 0)
        if batch is None:
            batch, num_graphs = edge_index.new_zeros(x.shape[0]), 1
        elif num_graphs is None:
            num_graphs = int(batch.max()) + 1 if batch.numel() else 0
        if self.dropout and self.training:
            x, edge_attr = torch.dropout(x, self.dropout, True), torch.dropout(edge_attr, self.dropout, True)
        z = Features.of(x, x_class, self.x_table, "x_class")
        z_edge = Features.of(edge_attr, edge_class, self.edge_table, "edge_class")
        i, j = edge_index.flip(0) if self.flow == "source_to_target" else edge_index
        plan = self.plan(x, edge_index) if plan is None else plan
        fuse = self._fuses(x, edge_index)

        s, edge_weights = self._neighbourhood(z, z_edge, i, j, plan, fuse and not return_attention)
        near = torch.cat([z.full(), s], 1)
        scores = None if self.gamma is None else self.gamma(near)
        g, node_weights = aggregate(self.node_aggregation, self.alpha(near), scores, batch, num_graphs)

        context = g.index_select(0, batch)
        node_input = torch.cat([z.full(), context] if self.strict else [near, context], 1)
        nodes = self.rho(node_input)
        node_gate = None if self.node_gate is None else torch.sigmoid(self.node_gate(node_input))
        edges, edge_gate = self._edge_labels(z, None if self.strict else s, g, batch, z_edge, i, j, plan, fuse)
        if edge_gate is not None:
            edge_gate = torch.sigmoid(edge_gate)
        attention = (edge_weights, node_weights) if return_attention else (None, None)
        return GPIOutput(nodes, edges, g, s, node_gate, edge_gate, *attention)

    def plan(self, x: Tensor, edge_index: Tensor) -> EdgePlan | None:
        """The order in which edges are walked, None if all at once; it serves every call with this ``edge_index``."""
        if not self.chunk_edges and not self._fuses(x, edge_index):
            return None
        i, j = edge_index.flip(0) if self.flow == "source_to_target" else edge_index
        return EdgePlan.build(i, j, x.shape[0], self.chunk_edges or CACHE_EDGES)

    def _fuses(self, x: Tensor, edge_index: Tensor) -> bool:
        # Tracers need plain operations; autocast picks types by operation; on a GPU the chunks would be too small.
        if torch.compiler.is_compiling() or torch.is_autocast_enabled(x.device.type) or x.device.type != "cpu":
            return False
        worth = self._saved_by_fusing * edge_index.shape[1] >= WORTH_FUSING
        return worth if self.fused is None else self.fused

    def _recompute(self) -> bool:
        return self.chunk_edges is not None or not torch.is_grad_enabled()

    def _neighbourhood(
        self, z: Features, z_edge: Features, i: Tensor, j: Tensor, plan: EdgePlan | None, fuse: bool
    ) -> tuple[Tensor, Tensor | None]:
        phi, beta, kind = self.phi, self.beta, self.aggregation
        if fuse and plan is not None and isinstance(phi, Dense) and isinstance(beta, Dense | None):
            # An activation on the scores would keep the part of node i from cancelling.
            linear = beta is None or beta.activation == "none"
            if linear and kind != "max":
                edges = z_edge if plan.edge_order is None else z_edge.take(plan.edge_order)
                return fused_neighbourhood(phi, beta, kind, z, edges, plan, self._recompute()), None
        chunks = plan if self.chunk_edges else None
        return plain_neighbourhood(phi, beta, kind, z.full(), z_edge.full(), i, j, chunks)

    def _edge_labels(
        self,
        z: Features,
        s: Tensor | None,
        g: Tensor,
        batch: Tensor,
        z_edge: Features,
        i: Tensor,
        j: Tensor,
        plan: EdgePlan | None,
        fuse: bool,
    ) -> tuple[Tensor | None, Tensor | None]:
        rho, gate = self.edge_rho, self.edge_gate
        if rho is None:
            return None, None
        if fuse and plan is not None and isinstance(rho, MLP) and len(rho.layers) > 1:
            edges = z_edge if plan.edge_order is None else z_edge.take(plan.edge_order)
            labels, gates = fused_edge_labels(rho, gate, z, s, g, batch, edges, plan, self._recompute())
            return plan.edges_out(labels), None if gates is None else plan.edges_out(gates)
        networks = [rho] if gate is None else [rho, gate]
        chunks = plan if self.chunk_edges else None
        context = g.index_select(0, batch)
        labels, *rest = plain_edge_labels(networks, z.full(), s, context, z_edge.full(), i, j, chunks)
        return labels, rest[0] if rest else None
