"""A graph as objects of other libraries: networkx, pandas, Arrow, PyG. Each is imported on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from scenegpi.errors import GraphError, require
from scenegpi.graph import SceneGraph

if TYPE_CHECKING:
    import networkx
    import pandas
    import pyarrow
    from torch_geometric.data import HeteroData

Table = Literal["relations", "objects"]


def to_networkx(graph: SceneGraph) -> networkx.MultiDiGraph:
    """Nodes are box indices (label, box, score), edges the relations (predicate, score, predicate_score).

    The score of a relation is P(subject) P(object) P(predicate); `predicate_score` is its last factor.
    """
    import networkx

    out = networkx.MultiDiGraph(image_id=graph.image_id, file=graph.file, width=graph.width, height=graph.height)
    scores = np.ones(len(graph)) if graph.scores is None else graph.scores
    for i, name in enumerate(graph.names):
        out.add_node(i, label=name, box=tuple(graph.boxes[i].tolist()), score=float(scores[i]))
    weights = np.ones(len(graph.relations)) if graph.relation_scores is None else graph.relation_scores
    rows = zip(graph.relations.tolist(), graph.triplet_scores().tolist(), weights.tolist(), strict=True)
    for (s, o, p), score, weight in rows:
        out.add_edge(s, o, predicate=graph.vocabulary.predicates[p], score=score, predicate_score=weight)
    return out


def columns(graph: SceneGraph, table: Table = "relations") -> dict[str, list[Any]]:
    """Of the relations, best first: subject, predicate, object, score, subject_index, object_index; or of the objects:
    label, x1, y1, x2, y2, score and attributes (names)."""
    if table == "relations":
        rows = graph.triplets()
        fields = ("subject", "predicate", "object", "score", "subject_index", "object_index")
        return {name: [getattr(row, name) for row in rows] for name in fields}
    if table != "objects":
        raise GraphError(f"table: expected relations or objects, found {table!r:.40}")
    sides = {side: graph.boxes[:, k].tolist() for k, side in enumerate(("x1", "y1", "x2", "y2"))}
    names = [[name for name, _ in row] for row in graph.attributes or [()] * len(graph)]
    return {"label": graph.names, **sides, "score": [each.score for each in graph.objects], "attributes": names}


def to_df(graph: SceneGraph, table: Table = "relations") -> pandas.DataFrame:
    """A DataFrame of the relations, or of the objects."""
    require("to_df", "notebook", "pandas")
    import pandas

    return pandas.DataFrame(columns(graph, table))


def to_arrow(graph: SceneGraph, table: Table = "relations") -> pyarrow.Table:
    """An Arrow table of the relations, or of the objects; its types do not depend on the rows."""
    require("to_arrow", "notebook", "pyarrow")
    import pyarrow as pa

    kinds = {"score": pa.float64(), "subject_index": pa.int32(), "object_index": pa.int32()}
    kinds |= dict.fromkeys(("x1", "y1", "x2", "y2"), pa.float64()) | {"attributes": pa.list_(pa.string())}
    found = columns(graph, table)
    return pa.table({name: pa.array(values, kinds.get(name, pa.string())) for name, values in found.items()})


def to_hetero_data(graph: SceneGraph) -> HeteroData:
    """PyG's HeteroData: `data["object"]` has x (N, 4) boxes, y (N,) labels and score (N,); `data["object", predicate,
    "object"]` of each predicate that occurs has edge_index (2, E) and score (E,)."""
    require("to_hetero_data", "notebook", "torch_geometric")
    import torch
    from torch_geometric.data import HeteroData

    data = HeteroData()
    data["object"].x = torch.tensor(graph.boxes, dtype=torch.float32)
    data["object"].y = torch.tensor(graph.labels, dtype=torch.int64)
    data["object"].score = torch.tensor([each.score for each in graph.objects], dtype=torch.float32)
    scores = graph.triplet_scores()
    for p in np.unique(graph.relations[:, 2]).tolist():
        rows = graph.relations[:, 2] == p
        edges = data["object", graph.vocabulary.predicates[p], "object"]
        edges.edge_index = torch.tensor(graph.relations[rows, :2].T.copy(), dtype=torch.int64)
        edges.score = torch.tensor(scores[rows], dtype=torch.float32)
    return data
