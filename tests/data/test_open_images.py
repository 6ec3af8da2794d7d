"""Open Images relationships: what is read, and what is said of bad rows."""

from __future__ import annotations

import pytest

from scenegpi.data import DataError, open_dataset, validate
from vg_files import dump

HEADER = "ImageID,LabelName1,LabelName2,XMin1,XMax1,YMin1,YMax1,XMin2,XMax2,YMin2,YMax2,RelationshipLabel\n"


def test_open_images(tmp_path):
    rows = (
        "aa,/m/man,/m/car,0.1,0.5,0.2,0.4,0,1,0,1,inside_of\naa,/m/man,/m/hat,0.1,0.5,0.2,0.4,0.1,0.2,0.1,0.2,wears\n"
    )
    path = dump(tmp_path / "train-annotations-vrd.csv", "\ufeff" + HEADER + rows)
    dump(tmp_path / "class-descriptions.csv", "/m/man,Man\n/m/car,Car\n")
    dump(tmp_path / "sizes.json", {"aa": {"width": 200, "height": 100}})
    data = open_dataset(path, sizes=tmp_path / "sizes.json")
    assert data.vocabulary.objects == ("/m/hat", "Car", "Man")
    assert data[0].boxes.tolist() == [[20, 20, 100, 40], [0, 0, 200, 100], [20, 10, 40, 20]]
    assert [t[:3] for t in data[0].triplets()] == [("Man", "inside_of", "Car"), ("Man", "wears", "/m/hat")]
    assert data.split_codes().tolist() == [0]
    assert open_dataset(dump(tmp_path / "latest.csv", HEADER + rows)).split_codes().tolist() == [-1]
    nominal = open_dataset(path)
    assert (nominal[0].width, nominal.report.warnings) == (1024, 1)
    assert "assumed to be 1024 x 1024" in str(nominal.report.defects[0])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("aa,m,c,x,0.5,0.2,0.4,0,1,0,1,r\n", "image aa: line 2: XMin1..YMax2: expected numbers"),
        ("aa,m,c,0.9,0.5,0.2,0.4,0,1,0,1,r\n", "has x2 < x1"),
        ("aa,m,c,0.1\n", "line 2: YMin1: missing"),
        ("aa,m,c,nan,0.5,0.2,0.4,0,1,0,1,r\n", "is not finite"),
    ],
)
def test_open_images_defects(tmp_path, rows, message):
    report = validate(dump(tmp_path / "x.csv", HEADER + rows))
    assert message in " / ".join(str(d) for d in report.defects if d.severity == "error")


def test_open_images_needs_its_columns(tmp_path):
    with pytest.raises(DataError, match="column 'LabelName1' is missing"):
        open_dataset(dump(tmp_path / "x.csv", "ImageID,Label\n1,2\n"))
