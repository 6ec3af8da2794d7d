"""Operators of an exported graph written as faster ones that mean the same.

| the exporter writes | here it becomes |
|---|---|
| ScatterElements(x, Expand(rows (M, 1)), y) along axis 0 | ScatterND(x, rows, y) |
| GatherND(x, Unsqueeze(rows, -1)) | Gather(x, rows) along axis 0 |

Rows are copied or added whole.
"""

from __future__ import annotations

import onnx_ir as ir


def simplify(graph: ir.Graph) -> None:
    """Replaces them in place, and removes what nothing reads any more."""
    for node in list(graph):
        new = _scatter(node) or _gather(node)
        if new is not None:
            ir.convenience.replace_nodes_and_values(graph, node, [node], [new], node.outputs, new.outputs)
    read = {id(value) for value in graph.outputs}
    for node in reversed(list(graph)):
        if not any(id(value) in read for value in node.outputs):
            graph.remove(node, safe=True)
            continue
        read |= _read(node)
    for name, value in list(graph.initializers.items()):
        if id(value) not in read:
            del graph.initializers[name]


def _read(node: ir.Node) -> set[int]:
    """Values that a node reads, also within the graphs that it holds (the steps of a Scan)."""
    graphs = [each.as_graph() for each in node.attributes.values() if each.type == ir.AttributeType.GRAPH]
    return {id(value) for value in node.inputs}.union(*(_read(step) for graph in graphs for step in graph))


def _scatter(node: ir.Node) -> ir.Node | None:
    rows = _source(node, 1, "Expand") if node.op_type == "ScatterElements" else None
    if rows is None or rows.shape is None or len(rows.shape) != 2 or rows.shape[1] != 1:
        return None
    if node.attributes.get_int("axis", 0) != 0:
        return None
    reduction = node.attributes.get_string("reduction", "none")
    return ir.node("ScatterND", [node.inputs[0], rows, node.inputs[2]], {"reduction": reduction})


def _gather(node: ir.Node) -> ir.Node | None:
    rows = _source(node, 1, "Unsqueeze") if node.op_type == "GatherND" else None
    if rows is None or rows.shape is None or node.attributes.get_int("batch_dims", 0) != 0:
        return None
    last = node.inputs[1].shape if node.inputs[1] is not None else None
    if last is None or len(last) != len(rows.shape) + 1 or last[-1] != 1:
        return None
    return ir.node("Gather", [node.inputs[0], rows], {"axis": 0})


def _maker(node: ir.Node, place: int, operator: str) -> ir.Node | None:
    """The node that makes an input, if it is this operator."""
    value = node.inputs[place]
    maker = None if value is None else value.producer()
    return maker if maker is not None and maker.op_type == operator else None


def _source(node: ir.Node, place: int, operator: str) -> ir.Value | None:
    """What the operator that makes an input of a node reads."""
    maker = _maker(node, place, operator)
    return None if maker is None else maker.inputs[0]
