"""The scene-graph predictor written straight from the paper's equations, to compare with.

With the weights of one ``Recurrent``, every pair's input written out as an n x n x d tensor: image by image (as the
paper's released code does), and for a padded batch of images. Neighbours are j != i: the diagonal is masked.
"""

import torch
from torch import Tensor
from torch.nn.functional import linear

from scenegpi.gpi import Recurrent

__all__ = ["padded_batch", "per_image"]


def per_image(model: Recurrent, nodes: Tensor, pairs: Tensor, static: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """nodes ``(n, C)``, pairs ``(n, n, R)`` logits, static ``(n, a)`` -> logits after each step."""
    everyone = torch.ones(1, len(nodes), dtype=torch.bool)
    steps = padded_batch(model, nodes[None], pairs[None], static[None], everyone)
    return [step[0] for step in steps[0]], [step[0] for step in steps[1]]


def padded_batch(
    model: Recurrent, nodes: Tensor, pairs: Tensor, static: Tensor, present: Tensor
) -> tuple[list[Tensor], list[Tensor]]:
    """nodes ``(B, n, C)``, pairs ``(B, n, n, R)``, static ``(B, n, a)``, present ``(B, n)`` bool; n of the largest."""
    node_steps, pair_steps = [], []
    batch, n = present.shape
    valid = (present.unsqueeze(1) & ~torch.eye(n, dtype=torch.bool)).unsqueeze(-1)
    hidden = ~present.unsqueeze(-1)
    for _ in range(model.steps):
        x, e = _features(model, nodes, pairs, static)
        z_i, z_j = x.unsqueeze(2).expand(-1, n, n, -1), x.unsqueeze(1).expand(-1, n, n, -1)
        pair = torch.cat([z_i, e, z_j], -1)
        w = _affine(model.layer.beta, pair).masked_fill(~valid, -1e30).softmax(2)
        s = (w * _affine(model.layer.phi, pair).relu()).sum(2)
        near = torch.cat([x, s], -1)
        v = _affine(model.layer.gamma, near).masked_fill(hidden, -1e30).softmax(1)
        g = (v * _affine(model.layer.alpha, near).relu()).sum(1)
        node_in = torch.cat([x, s, g.unsqueeze(1).expand(-1, n, -1)], -1)
        s_i, s_j = s.unsqueeze(2).expand(-1, n, n, -1), s.unsqueeze(1).expand(-1, n, n, -1)
        graph = g.view(batch, 1, 1, -1).expand(-1, n, n, -1)
        pair_in = torch.cat([z_i, z_j, s_i, s_j, e, graph], -1)
        nodes, pairs = _update(model, nodes, pairs, node_in, pair_in)
        node_steps.append(nodes)
        pair_steps.append(pairs)
    return node_steps, pair_steps


def _features(model: Recurrent, nodes: Tensor, pairs: Tensor, static: Tensor) -> tuple[Tensor, Tensor]:
    words, predicates = model.layer.x_table, model.layer.edge_table
    x = torch.cat([nodes.log_softmax(-1), static, words[nodes.argmax(-1)]], -1)
    return x, torch.cat([pairs.log_softmax(-1), predicates[pairs.argmax(-1)]], -1)


def _update(model: Recurrent, nodes: Tensor, pairs: Tensor, node_in: Tensor, pair_in: Tensor) -> tuple[Tensor, Tensor]:
    layer = model.layer
    nodes = _rho(layer.rho, node_in) + torch.sigmoid(_affine(layer.node_gate, node_in)) * nodes
    pairs = _rho(layer.edge_rho, pair_in) + torch.sigmoid(_affine(layer.edge_gate, pair_in)) * pairs
    return nodes, pairs


def _affine(network: torch.nn.Module, inputs: Tensor) -> Tensor:
    return linear(inputs, network.weight, network.bias)


def _rho(network: torch.nn.Module, inputs: Tensor) -> Tensor:
    for layer in network.layers[:-1]:
        inputs = _affine(layer, inputs).relu()
    return _affine(network.layers[-1], inputs)
