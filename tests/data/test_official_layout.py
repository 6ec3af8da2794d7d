"""The official download of Visual Genome for scene graphs: files with attributes, four ids too many, two photo folders."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import vg_files
from scenegpi.cli import app
from scenegpi.data import DataError, open_dataset

ATTRIBUTES = ["white", "large", "wooden"]
NUMBERS = np.zeros((5, 10), dtype=np.int64)
NUMBERS[0, :3] = [3, 1, 3]
NUMBERS[4, 0] = 2


def official(folder, numbers=NUMBERS, names=ATTRIBUTES):
    """As Tang et al. publish it: image_data.json lists four images that the h5 file does not have."""
    extra = [{"image_id": i, "width": 9, "height": 9} for i in (1592, 1722, 4616, 4617)]
    vg_files.write(folder, {"attributes": numbers, "active_object_mask": np.ones((5, 1), bool)}, images=[*extra[:2], *vg_files.image_data(), *extra[2:]])  # fmt: skip
    (folder / "VG-SGG.h5").rename(folder / "VG-SGG-with-attri.h5")
    (folder / "VG-SGG-dicts.json").unlink()
    tables = {
        "idx_to_attribute": {str(i): name for i, name in enumerate(names, 1)},
        "attribute_to_idx": {name: i for i, name in enumerate(names, 1)},
        "attribute_count": dict.fromkeys(names, 7),
    }
    (folder / "VG-SGG-dicts-with-attri.json").write_text(json.dumps(vg_files.dicts() | tables))
    return folder


def test_attributes_photos_and_ids_of_the_official_files(tmp_path):
    folder = official(tmp_path)
    for name, image_id in (("VG_100K", 11), ("VG_100K_2", 13)):
        (folder / name).mkdir()
        Image.new("RGB", (8, 6)).save(folder / name / f"{image_id}.jpg")
    dataset = open_dataset(folder)
    assert [graph.image_id for graph in dataset] == [11, 12, 13]
    first, _, last = dataset
    assert first.attributes == ((("white", 1.0), ("wooden", 1.0)), ())
    assert last.attributes == ((), (), (("large", 1.0),))
    assert dataset.photo_path(first) == folder / "VG_100K" / "11.jpg"
    assert dataset.photo_path(last) == folder / "VG_100K_2" / "13.jpg"
    assert [graph.image_id for graph in open_dataset(folder, split="test")] == [13]


def test_the_dictionaries_beside_a_file_are_its_own(tmp_path):
    """Both downloads in one folder: each h5 file is read with the dictionaries of its name."""
    folder = vg_files.write(official(tmp_path))
    assert open_dataset(folder / "VG-SGG-with-attri.h5")[0].attributes is not None
    assert open_dataset(folder / "VG-SGG.h5")[0].attributes is None


def test_a_number_of_no_attribute_costs_the_image(tmp_path):
    numbers = NUMBERS.copy()
    numbers[1, 4] = 4
    dataset = open_dataset(official(tmp_path, numbers))
    assert [graph.image_id for graph in dataset] == [12, 13]
    assert "attributes[1]" in str(dataset.report.first_error)
    with pytest.raises(DataError, match="attributes: 4 rows, expected 5"):
        open_dataset(official(tmp_path / "b", NUMBERS[:4]))
    with pytest.raises(DataError):
        open_dataset(official(tmp_path / "c", names=["white", "white"]))
    with h5py.File(folder := tmp_path / "VG-SGG-with-attri.h5", "a") as file:
        del file["attributes"]
        file["attributes"] = np.zeros(5)
    with pytest.raises(DataError, match="attributes: unexpected shape"):
        open_dataset(folder)


def test_one_command_from_the_download_to_a_table(tmp_path):
    call = ["eval", "--model", "vg150-layout", "--data", str(official(tmp_path)), "--split", "test"]
    done = CliRunner().invoke(app, [*call, "--task", "predcls"])
    assert done.exit_code == 0, done.output
    assert {"percent", "@50", "(test)."} <= set(done.output.split())
