"""JSON lines: what is said of bad lines."""

from __future__ import annotations

import pytest

from scenegpi.data import DataError, open_dataset
from vg_files import dump


def test_jsonl_bad_lines_are_left_out_or_stop_a_strict_run(tmp_path):
    good = '{"vocabulary": {"objects": ["a"]}, "image": {"id": 1}, "objects": [{"box": [0, 0, 1, 1], "label": "a"}]}'
    other = '{"image": {"id": 2}, "objects": [{"box": [0, 0, 1, 1], "label": "b"}], "relations": [{"subject": 4, "object": 0, "predicate": 0}]}'
    path = dump(tmp_path / "x.jsonl", f"{good}\n\n{other}\n{{]\n{good}\n")
    data = open_dataset(path)
    assert [g.image_id for g in data] == [1]
    assert [str(d).removeprefix(f"{path}: ") for d in data.report.defects] == [
        "image 2: line 3: objects[0].label: 'b' is not in the vocabulary",
        "line 4: JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        "line 5: image.id: 1 is duplicated",
    ]
    assert data.report.skipped == 3
    with pytest.raises(DataError, match=r"image 2: line 3: objects\[0\]\.label"):
        open_dataset(path, strict=True)
    trusted = open_dataset(path, trust=True)
    assert len(trusted) == 4
    with pytest.raises(DataError, match=r"line 3: objects\[0\]\.label"):
        trusted[1]
