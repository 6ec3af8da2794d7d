"""Files for RAG systems and for Label Studio hold what the graphs hold, whatever their names."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

from scenegpi import SceneGraph, Vocabulary
from scenegpi.data import DataError, convert, open_dataset, write_jsonl
from scenegpi.data.export.rag import write_graphrag, write_lightrag

WORDS = Vocabulary(['a "b"', "c,d\ne", "ü'ß", "\\n", "{}"], ['says "hi"', "near,\n"])


def graphs() -> list[SceneGraph]:
    boxes = np.array([[0, 0, 5, 5], [1, 2, 30, 40.5], [3, 3, 9, 9], [0, 1, 2, 3], [4, 4, 6, 6]], dtype=float)
    first = SceneGraph(
        boxes, range(5), WORDS, [(0, 1, 0), (1, 2, 1), (0, 1, 1)], image_id='x"1', file="a,b.jpg", width=50, height=60
    )
    second = SceneGraph(boxes[:2], [1, 1], WORDS, [(1, 0, 0)], image_id=2, scores=[0.5, 1.0], relation_scores=[0.25])
    return [first, second]


def test_label_studio(tmp_path):
    write_jsonl(tmp_path / "g.jsonl", graphs()[:1])
    assert convert(open_dataset(tmp_path / "g.jsonl"), tmp_path / "tasks.json", "label-studio") == 1
    (task,) = json.loads((tmp_path / "tasks.json").read_text())
    result = task["annotations"][0]["result"]
    boxes = [each for each in result if each["type"] == "rectanglelabels"]
    graph = graphs()[0]
    for each, box, name in zip(boxes, graph.boxes, graph.names, strict=True):
        value = each["value"]
        assert value["rectanglelabels"] == [name]
        size = np.array([each["original_width"], each["original_height"]]) / 100
        corner = np.array([value["x"], value["y"]]) * size
        assert np.allclose([*corner, *(corner + np.array([value["width"], value["height"]]) * size)], box)
    links = [(each["from_id"], each["labels"][0], each["to_id"]) for each in result if each["type"] == "relation"]
    assert links == [(f"box{s}", WORDS.predicates[p], f"box{o}") for s, o, p in graph.relations.tolist()]
    write_jsonl(tmp_path / "unsized.jsonl", graphs()[1:])
    with pytest.raises(DataError, match="width and height"):
        convert(open_dataset(tmp_path / "unsized.jsonl"), tmp_path / "no.json", "label-studio")
    assert not (tmp_path / "no.json").exists()


def told() -> list[SceneGraph]:
    """Two men, a horse that is under one of them, a relation of an object to itself."""
    words = Vocabulary(["man", "horse"], ["riding", "under", "near"])
    boxes = [[0, 0, 10, 10], [20, 0, 30, 10], [0, 5, 12, 20]]
    links = [[0, 2, 0], [2, 0, 1], [1, 2, 2], [1, 1, 2]]
    size = {"width": 30, "height": 30}
    return [
        SceneGraph(boxes, [0, 0, 1], words, links, attributes=[["old"], [], []], image_id=7, file="7.jpg", **size),
        SceneGraph(boxes[:1], [0], words, image_id="x", **size),
    ]


def test_lightrag_takes_its_file(tmp_path, caplog):
    write_jsonl(tmp_path / "g.jsonl", told())
    convert(open_dataset(tmp_path / "g.jsonl"), tmp_path / "kg.json", "lightrag")
    assert "cannot hold boxes (of 2 images), relations of an object to itself (of 1 images)" in caplog.text
    kg = json.loads((tmp_path / "kg.json").read_text())
    assert [chunk["source_id"] for chunk in kg["chunks"]] == ["7", "x"]
    assert kg["chunks"][0]["content"].startswith("7.jpg: Objects: 2 man, horse.")
    assert [row["entity_name"] for row in kg["entities"]] == ["man 1 in 7", "man 2 in 7", "horse in 7", "man in x"]
    assert kg["entities"][0]["description"] == "old man in 7.jpg, top left"
    links = {(row["src_id"], row["tgt_id"]): row for row in kg["relationships"]}
    both = links["man 1 in 7", "horse in 7"]
    assert (both["description"], both["keywords"]) == ("man riding horse; horse under man", "riding, under")
    assert len(links) == len(kg["relationships"]) == 2
    lightrag = pytest.importorskip("lightrag", reason="pip install lightrag-hku")
    asyncio.run(_insert(lightrag, tmp_path / "rag", kg))


async def _insert(lightrag, folder, kg):
    """The real package, with an embedding and a tokenizer that need no network."""
    from lightrag.utils import EmbeddingFunc, Tokenizer

    class Words:
        def encode(self, text):
            return [hash(word) for word in text.split()]

        def decode(self, tokens):
            return " ".join(map(str, tokens))

    async def embed(texts):
        return np.ones((len(texts), 8))

    async def answer(*_, **__):
        return ""

    folder.mkdir()
    rag = lightrag.LightRAG(
        working_dir=str(folder),
        llm_model_func=answer,
        embedding_func=EmbeddingFunc(embedding_dim=8, max_token_size=512, func=embed),
        tokenizer=Tokenizer("words", Words()),
    )
    await rag.initialize_storages()
    await rag.ainsert_custom_kg(kg)
    graph = rag.chunk_entity_relation_graph
    assert set(await graph.get_all_labels()) == {row["entity_name"] for row in kg["entities"]}
    edge = await graph.get_edge("man 1 in 7", "horse in 7")
    assert (edge["description"], float(edge["weight"])) == ("man riding horse; horse under man", 2.0)
    await rag.finalize_storages()


def test_graphrags_own_loaders_read_its_tables(tmp_path):
    pandas = pytest.importorskip("pandas")
    assert write_graphrag(tmp_path / "index", told()) == 2
    tables = {path.stem: pandas.read_parquet(path) for path in (tmp_path / "index").iterdir()}
    assert {name: len(table) for name, table in tables.items()} == {
        "entities": 4,
        "relationships": 2,
        "text_units": 2,
        "documents": 2,
    }
    schemas = pytest.importorskip("graphrag.data_model.schemas", reason="pip install --no-deps graphrag")
    loaders = pytest.importorskip("graphrag.query.input.loaders.dfs")
    for name, table in tables.items():
        wanted = set(getattr(schemas, f"{name.upper()}_FINAL_COLUMNS"))
        assert wanted - set(table.columns) <= {"creation_date", "raw_data"}, name
    entities = loaders.read_entities(tables["entities"], community_col=None)
    links = loaders.read_relationships(tables["relationships"])
    units = loaders.read_text_units(tables["text_units"], covariates_col=None)
    assert [(each.title, each.type, each.rank) for each in entities][2] == ("horse in 7", "horse", 2)
    assert {(each.source, each.target) for each in links} <= {(a.title, b.title) for a in entities for b in entities}
    assert links[0].text_unit_ids == [units[0].id]
    assert set(units[0].entity_ids) == {each.id for each in entities[:3]}


def test_names_that_would_be_the_same_stay_apart(tmp_path):
    words = Vocabulary(["man", "man 1"], ["near"])
    graph = SceneGraph([[0, 0, 5, 5]] * 3, [0, 0, 1], words, [[0, 2, 0]])
    write_lightrag(tmp_path / "kg.json", [graph])
    names = [row["entity_name"] for row in json.loads((tmp_path / "kg.json").read_text())["entities"]]
    assert len(set(names)) == 3
    with pytest.raises(DataError, match="duplicated"):
        write_lightrag(tmp_path / "twice.json", [graph.replace(image_id=1)] * 2)
