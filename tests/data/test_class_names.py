"""Class names from files: YAML as people write it, hostile YAML, and one line for everything that is wrong."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scenegpi.data import DataError
from scenegpi.data.class_names import YAML_BYTES, read_names_file

NAME = st.text(st.characters(exclude_categories=["C"], exclude_characters="\x85\u2028\u2029"), min_size=1, max_size=12)


def read(folder, text: str):
    path = folder / "data.yaml"
    path.write_text(text, encoding="utf-8")
    return read_names_file(path)


@pytest.mark.parametrize(
    "text",
    [
        "names: [cat, 'hot, dog', \"c\"]\n",
        "names: [cat,\n  'hot, dog',  # food\n  c]\n",
        "nc: 3\nnames:\n- cat\n- hot, dog\n- c\ntrain: ../images\n",
        "names:\n  0: cat\n\n  1: hot, dog\n  # a comment\n  2: c\n",
        "names: {2: c, 0: cat, '1': 'hot, dog'}\n",
        "---\ndownload: |\n  names: [x]\n  print('names')\nnames: &all [cat, 'hot, dog', c]\nsame: *all\n...\n",
        "\ufeffnames: !!seq [!!str cat, 'hot, dog', c]\r\n",
    ],
)
def test_names_in_all_the_ways_people_write_them(tmp_path, text):
    assert dict(sorted(read(tmp_path, text).items())) == {0: "cat", 1: "hot, dog", 2: "c"}


def test_ids_of_categories_may_be_written_as_floats(tmp_path):
    path = tmp_path / "coco.json"
    path.write_text('{"categories": [{"id": 1.0, "name": "cat"}, {"id": 3, "name": "dog"}]}', encoding="utf-8")
    assert read_names_file(path) == {1: "cat", 3: "dog"}


def test_words_that_mean_something_to_yaml_are_names(tmp_path):
    assert read(tmp_path, "names: [on, no, 1, 1.5, ~, null, 2024-01-01]\n") == dict(
        enumerate(["on", "no", "1", "1.5", "~", "null", "2024-01-01"])
    )


@given(st.lists(NAME, min_size=1, max_size=5), st.booleans(), st.booleans())
def test_what_is_written_as_yaml_is_read_back(tmp_path_factory, names, mapping, flow):
    data = {"path": "x", "names": dict(enumerate(names)) if mapping else names, "nc": len(names)}
    text = yaml.safe_dump(data, default_flow_style=flow, allow_unicode=True)
    assert read(tmp_path_factory.mktemp("names"), text) == dict(enumerate(names))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("names: [a, b", "YAML: line 1: expected ',' or ']'"),
        ("nc: 1\nnames:\n\t- a\n", "YAML: line 3: found character '\\t'"),
        ("names: [\x01]", "YAML: special characters are not allowed"),
        ("names: [a]\n---\nnames: [b]\n", "YAML: line 2: but found another document"),
        ("names: " + "[" * 5000, "YAML: nested too deeply"),
        ("nc: 3\n", "names: missing"),
        ("- a\n- b\n", "names: missing"),
        ("names: cat\n", "expected class names: one per line, a list, or number -> name"),
        ("nc: 2\nnames: [a, [b, c]]\n", "names[1]: expected a name"),
        ("names:\n  0: a\n  1:\n", "names[1]: expected a name"),
        ("names: {0: a, x: b}\n", "names: expected numbers before the names, found 'x'"),
        ("names: {[1, 2]: a}\n", "YAML: line 1: found unhashable key"),
        (f"names: {{{'1' * 5000}: a}}\n", "YAML: "),
        ("names: {-1: a}\n", "names: expected numbers before the names, found '-1'"),
        ("names: []\n", "expected class names"),
        ("#" * (YAML_BYTES + 1), f"{YAML_BYTES + 1:,} bytes, more than the {YAML_BYTES:,}"),
    ],
)
def test_a_wrong_file_is_one_line_with_the_field(tmp_path, text, message):
    with pytest.raises(DataError) as caught:
        read(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'data.yaml'}: {message}")
    assert "\n" not in str(caught.value)


def test_a_billion_laughs_cost_nothing(tmp_path):
    lines = ["l0: &l0 [" + ", ".join(["lol"] * 10) + "]"]
    lines += [f"l{i}: &l{i} [" + ", ".join([f"*l{i - 1}"] * 10) + "]" for i in range(1, 30)]
    tracemalloc.start()
    with pytest.raises(DataError, match=r"names\[0\]: expected a name"):
        read(tmp_path, "\n".join([*lines, "names: *l29"]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6  # unfolded, these would be 10^30 words


def test_nothing_in_a_file_is_run(tmp_path):
    with pytest.raises(DataError, match=r"names\[0\]: expected a name"):
        read(tmp_path, f"names: [!!python/object/apply:os.mkdir ['{tmp_path}/made']]\n")
    assert not (tmp_path / "made").exists()


def test_the_parser_is_imported_where_it_is_needed():
    code = "import sys, scenegpi.data, scenegpi.data.class_names; print('yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
