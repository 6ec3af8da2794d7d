"""Operators of an exported graph written as faster ones that mean the same.

| the exporter writes | here it becomes |
|---|---|
| ScatterElements(x, Expand(rows (M, 1)), y) along axis 0 | ScatterND(x, rows, y) |
| GatherND(x, Unsqueeze(rows, -1)) | Gather(x, rows) along axis 0 |
| channels last, MatMul(x, W), Add(b), channels first again | Conv(x, W as a kernel of size 1, b) |

Rows are copied or added whole. A network of convolutions only stays in the layout that a runtime likes best.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir


def simplify(graph: ir.Graph) -> None:
    """Replaces them in place, and removes what nothing reads any more."""
    for node in list(graph):
        new = _scatter(node) or _gather(node) or _mix(node, graph)
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


def _mix(node: ir.Node, graph: ir.Graph) -> ir.Node | None:
    """A matrix product over the channels of each cell."""
    if not _turns(node, [0, 3, 1, 2]):
        return None
    add = _maker(node, 0, "Add")
    product = None if add is None else _maker(add, 0, "MatMul")
    last = None if product is None else _maker(product, 0, "Transpose")
    if add is None or product is None or last is None or not _turns(last, [0, 2, 3, 1]):
        return None
    weight, bias = product.inputs[1], add.inputs[1]
    if weight is None or bias is None or weight.const_value is None or bias.const_value is None:
        return None
    matrix = weight.const_value.numpy()
    if matrix.ndim != 2 or bias.const_value.shape.numpy() != (matrix.shape[1],):
        return None
    name = f"{weight.name}_kernel"
    if name not in graph.initializers:
        kernel = ir.tensor(np.ascontiguousarray(matrix.T)[:, :, None, None], name=name)
        graph.register_initializer(ir.val(name, const_value=kernel))
    return ir.node("Conv", [last.inputs[0], graph.initializers[name], bias], {"kernel_shape": [1, 1]})


def _turns(node: ir.Node, order: list[int]) -> bool:
    return node.op_type == "Transpose" and list(node.attributes.get_ints("perm", ())) == order


def _maker(node: ir.Node, place: int, operator: str) -> ir.Node | None:
    """The node that makes an input, if it is this operator."""
    value = node.inputs[place]
    maker = None if value is None else value.producer()
    return maker if maker is not None and maker.op_type == operator else None


def _source(node: ir.Node, place: int, operator: str) -> ir.Value | None:
    """What the operator that makes an input of a node reads."""
    maker = _maker(node, place, operator)
    return None if maker is None else maker.inputs[0]
