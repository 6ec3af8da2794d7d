"""Names, ids and numbers that are strange: never a fault, never a control character on a terminal."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vg_files
from attack_mutations import _places
from attack_worker import GOOD, examine
from scenegpi import GraphError, SceneGraph, Vocabulary
from scenegpi.checks import MAX_COORDINATE
from scenegpi.data import DataError, open_dataset, validate
from scenegpi.data.json_stream import JsonStream, RowStore
from scenegpi.errors import MOST_CHARACTERS, printable


@given(st.text())
def test_printable_text_is_one_line_without_controls(text):
    shown = printable(text)
    assert shown.isprintable()
    shown.encode()
    if text.isprintable():
        assert shown == text


def test_what_a_terminal_would_act_on():
    assert printable("a\x1b[31mb\x9b2J\nc\u202ed\ud800\u2028") == r"a\x1b[31mb\x9b2J\nc\u202ed\ud800\u2028"
    assert printable(7) == "7"


def test_long_messages_and_names_are_cut(tmp_path):
    name = "x" * 10**6
    assert len(str(DataError("f", name))) < MOST_CHARACTERS + 20
    graph = {
        "vocabulary": {"objects": ["a"]},
        "image": {"id": name},
        "objects": [{"box": [0, 0, 0, 0], "label": 0}] * 50,
    }
    report = validate(vg_files.dump(tmp_path / "x.jsonl", json.dumps(graph)))
    assert report.warnings == 50
    assert sum(len(str(defect)) for defect in report.defects) < 200_000


VALUES = {
    "400 digits": "9" * 400,
    "5001 digits": "9" * 5001,
    "64 bits": str(2**63),
    "1e300": "1e300",
    "beyond a float": "1e999",
    "half a surrogate": r'"\ud800"',
    "escape": r'"\u001b[31m"',
    "markup": '"[/x]"',
}


@pytest.mark.parametrize("value", VALUES)
def test_every_kind_of_json_file_with_a_value_put_in(cases, value):
    """A scalar anywhere becomes the value: read, defects or refused, and never anything else."""
    for name, (how, original) in cases.items():
        folder = original if original.is_dir() else original.parent
        for path in sorted(folder.rglob("*.json*")):
            whole = path.read_text()
            first, _, rest = whole.partition("\n") if path.suffix == ".jsonl" else (whole, "", "")
            holder = {"": json.loads(first)}
            places = [(node, key) for node, key in _places(holder) if not isinstance(node[key], dict | list)]
            step = max(len(places) // 4, 1)
            for node, key in places[list(VALUES).index(value) % step :: step]:  # other places for other values
                kept, node[key] = node[key], "\0here\0"
                text = json.dumps(holder[""]).replace(json.dumps("\0here\0"), VALUES[value])
                path.write_text(f"{text}\n{rest}")
                node[key] = kept
                assert examine(how, original) in GOOD, (name, path.name, key)
            path.write_text(whole)


@pytest.mark.parametrize("image_id", ["\udc00x", 2**63, -(2**63) - 1, 10**400, True, 1.5, None, [], {}], ids=range(9))
def test_an_id_that_is_none_costs_its_image_only(tmp_path, image_id):
    rows = vg_files.image_data()
    rows[0]["image_id"] = image_id
    folder = vg_files.write(tmp_path / "vg", images=rows)
    coco = {
        "categories": [{"id": 1, "name": "a"}],
        "images": [{"id": image_id}, {"id": 2}, {"id": 3}],
        "annotations": [],
    }
    good = {"category_id": 1, "bbox": [0, 0, 1, 1]}
    results = [{"image_id": i, **good} for i in (image_id, 2, 3)]
    for path in (folder, vg_files.dump(tmp_path / "c.json", coco), vg_files.dump(tmp_path / "r.json", results)):
        data = open_dataset(path)
        assert len(data) == 2
        assert data.report.errors == 1


@pytest.mark.parametrize("split", [[], {}, 1, True, "\ud800", "tra\x1bin"])
def test_a_split_of_any_kind_is_a_warning(tmp_path, split):
    line = json.dumps({"vocabulary": {"objects": ["a"]}, "image": {"id": 1}, "split": split})
    report = validate(vg_files.dump(tmp_path / "x.jsonl", line))
    assert (report.errors, report.warnings) == (0, 1)
    assert str(report.defects[0]).isprintable()


@pytest.mark.parametrize("far", [MAX_COORDINATE * 1.001, -1e8, 1e300])
def test_coordinates_far_away_cost_their_image_only(tmp_path, far):
    box = sorted([0.0, far])
    with pytest.raises(GraphError, match=r"boxes\[0\]: .* is beyond 10,000,000 pixels"):
        SceneGraph([[box[0], 0, box[1], 1]], [0], Vocabulary(["a"]))
    for name, text in {
        "x.json": [
            {"image_id": i, "category_id": 1, "bbox": [box[0], 0, (box[1] - box[0]) if i else 1, 1]} for i in range(3)
        ],
        "x.txt": f"0 0 0 {abs(far)} 1",
    }.items():
        data = open_dataset(vg_files.dump(tmp_path / name, text))
        assert data.report.errors >= 1
        for graph in data:
            assert np.isfinite(graph.boxes.astype(np.float32) ** 4).all()


def test_boxes_as_far_as_they_may_be_survive_single_precision():
    far = np.float32(MAX_COORDINATE)
    area = (2 * far) * (2 * far)
    assert np.isfinite(area * area)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(
    rows=st.lists(JSON, max_size=8),
    block=st.integers(1, 40),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
)
def test_a_stream_gives_what_the_whole_text_gives(tmp_path_factory, monkeypatch_module, rows, block, encoding):
    """However small the pieces that are read at a time, and in any encoding of JSON."""
    monkeypatch_module.setattr("scenegpi.data.json_stream.BLOCK", block)
    path = tmp_path_factory.getbasetemp() / "stream.json"
    indent = block % 3 or None
    path.write_text(
        json.dumps({"a": rows, "skip": {"x": rows}, "b": 1.5}, indent=indent, ensure_ascii=block % 2 == 0), encoding
    )
    with JsonStream(path) as stream:
        found = {}
        for key in stream.entries():
            if key == "a":
                pairs = list(stream.rows())
                assert [json.loads(text) for text, _ in pairs] == rows
                found[key] = [row for _, row in pairs]
            elif key == "skip":
                stream.skip()
            else:
                found[key] = stream.value()
        stream.end()
    assert found == {"a": rows, "b": 1.5}


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.mark.parametrize(
    "text",
    ["", "[", "[1", "[1,", "[1 2]", "{", '{"a"', '{"a" 1}', '{"a":1,}', "[1,]", '["', "[tru]", "[01]", "[1]x", "[NaN]"],
)
def test_a_stream_of_no_json_is_one_line(tmp_path, text):
    path = tmp_path / "x.json"
    path.write_text(" " + text)
    with pytest.raises(DataError, match="JSON: ") as caught, JsonStream(path) as stream:  # noqa: PT012
        if stream.peek() == "{":
            for _ in stream.entries():
                stream.value()
        else:
            list(stream.rows())
        stream.end()
    assert str(caught.value).isprintable()


@given(st.lists(st.tuples(st.integers(-3, 3) | st.sampled_from(["a", "b", "é"]), st.integers()), max_size=20))
def test_a_store_of_rows_gives_groups_once(pairs):
    store = RowStore()
    for number, (key, value) in enumerate(pairs):
        store.add(key, number, json.dumps({"image_id": key, "v": value}))
    keys = list(dict.fromkeys(key for key, _ in pairs))
    for key in keys[::2]:
        mine = [(n, {"image_id": k, "v": v}) for n, (k, v) in enumerate(pairs) if k == key]
        assert store.count(key) == len(mine)
        assert store.take(key) == mine
        assert store.take(key) == []
    assert list(store) == keys[1::2]
