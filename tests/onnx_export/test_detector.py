"""Detectors in ONNX files: recognised by what they give, boxes back in pixels of the photo, anything else refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from scenegpi.boxes import box_iou
from scenegpi.data.coco_names import COCO_PLACES
from scenegpi.errors import DataError
from scenegpi.onnx.detector import OnnxDetector, _grid

SIDE = 64
CELLS = 84  # of strides 8, 16, 32 over 64 x 64 pixels
PHOTO = np.full((100, 200, 3), 7, dtype=np.uint8)  # laid into 64 x 64: 64 x 32 pixels
BOX = np.array([50.0, 20, 150, 80])
CENTRED, CORNER = BOX * 0.32 + [0, 16, 0, 16], BOX * 0.32


def file_of(outputs, sizes=False, metadata=None, shape=(1, 3, SIDE, SIDE), size_type=TensorProto.INT64):
    """The bytes of a file that gives these arrays, whatever the picture."""
    inputs = [helper.make_tensor_value_info("images", TensorProto.FLOAT, shape)]
    if sizes:
        inputs.append(helper.make_tensor_value_info("orig_target_sizes", size_type, ["N", 2]))
    nodes, infos = [], []
    for name, value in outputs.items():
        value = np.asarray(value)
        nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value)))
        infos.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    model = helper.make_model(helper.make_graph(nodes, "g", inputs, infos), opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    helper.set_model_props(model, metadata or {})
    return model.SerializeToString()


def centred(box):
    return [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2, box[2] - box[0], box[3] - box[1]]


def rows(count, columns, box, scores):
    """Candidates far away and with no score, but one."""
    out = np.zeros((1, count, columns), dtype=np.float32)
    out[0, :, :4] = [SIDE - 2, SIDE - 2, 1, 1]
    out[0, 5] = [*box, *scores]
    return out


def yolox(box):
    """A raw grid: offsets from the cell and logarithms of sizes, in strides."""
    corner, step = _grid((8, 16, 32), SIDE, SIDE)
    out = np.zeros((1, CELLS, 8), dtype=np.float32)
    x, y, w, h = centred(box)
    k = 70
    out[0, k] = [x / step[k, 0] - corner[k, 0], y / step[k, 0] - corner[k, 1], np.log(w / step[k, 0]), np.log(h / step[k, 0]), 0.9, 0, 1, 0]  # fmt: skip
    return out


def cases():
    detr = {
        "labels": np.array([[1, 0]]),
        "boxes": np.array([[BOX, BOX]], dtype=np.float32),
        "scores": np.array([[0.9, 0.1]], dtype=np.float32),
    }
    v6 = rows(CELLS, 8, centred(CENTRED), [1, 0, 0.9, 0])
    v6[0, :, 4] = 1
    return {
        "detr": (detr, True),
        "yolox": ({"output": yolox(CORNER)}, False),
        "yolox decoded": ({"output": rows(CELLS, 8, centred(CORNER), [0.9, 0, 1, 0])}, False),
        "yolov5": ({"output0": rows(3 * CELLS, 8, centred(CENTRED), [0.9, 0, 1, 0])}, False),
        "yolov6": ({"outputs": v6}, False),
        "yolov8": ({"output0": rows(CELLS, 7, centred(CENTRED), [0, 0.9, 0]).transpose(0, 2, 1).copy()}, False),
        "yolov10": ({"output0": rows(300, 6, CENTRED, [0.9, 1])}, False),
        "yolov7 with nms": ({"output": np.array([[0, *CENTRED, 1, 0.9]], dtype=np.float32)}, False),
    }


@pytest.mark.parametrize("name", cases())
def test_each_layout_gives_the_box_in_pixels_of_the_photo(name):
    outputs, sizes = cases()[name]
    detector = OnnxDetector(file_of(outputs, sizes), names=["cat", "dog", "hat"])
    found = detector.detect(PHOTO)
    assert [found.names[k] for k in found.labels] == ["dog"]
    assert np.allclose(found.boxes, [BOX], atol=1e-3)
    assert np.allclose(found.scores, [0.9], atol=1e-5)
    assert found.size == (200, 100)


def test_pixels_are_laid_as_each_family_wants_them():
    red = np.zeros((100, 200, 3), dtype=np.uint8)
    red[..., 0] = 255
    seen = {}
    for name in ("detr", "yolox", "yolov8"):
        outputs, sizes = cases()[name]
        detector = OnnxDetector(file_of(outputs, sizes), names=["cat", "dog", "hat"])
        run = detector._session.run
        detector._session.run = lambda names, given, run=run, name=name: (
            seen.update({name: given}),
            run(names, given),
        )[1]
        detector.detect(red)
    assert seen["detr"]["images"][0, :, 0, 0].tolist() == [1, 0, 0]
    assert seen["detr"]["orig_target_sizes"].tolist() == [[200, 100]]
    assert seen["yolox"]["images"][0, :, 0, 0].tolist() == [0, 0, 255]
    assert seen["yolox"]["images"][0, :, -1, 0].tolist() == [114] * 3
    assert seen["yolov8"]["images"][0, :, 32, 0].tolist() == [1, 0, 0]
    assert np.allclose(seen["yolov8"]["images"][0, :, [0, -1], 0], 114 / 255)


def test_names_come_from_metadata_the_caller_or_coco():
    outputs, _ = cases()["yolov8"]
    told = OnnxDetector(
        file_of(outputs, metadata={"names": "{0: 'cat', 1: \"dog's bowl\", 2: 'no'}", "task": "detect"})
    )
    assert told.names == ("cat", "dog's bowl", "no")
    assert OnnxDetector(file_of(outputs), names={1: "dog", 2: "hat"}).names == ("class 0", "dog", "hat")
    assert OnnxDetector(file_of(*cases()["detr"])).names == tuple(COCO_PLACES.values())
    with pytest.raises(DataError, match="3 labels without names; give them with --names FILE"):
        OnnxDetector(file_of(outputs))
    with pytest.raises(DataError, match="2 names, but the file has 3 labels"):
        OnnxDetector(file_of(outputs), names=["cat", "dog"])
    with pytest.raises(DataError, match="label 1, but only 1 names"):
        OnnxDetector(file_of(*cases()["detr"]), names=["cat"]).detect(PHOTO)
    for names in ("{0: ", "{0: [1]}", "[" * 3000, "a" * 300_000, "{x: 'cat'}"):
        with pytest.raises(DataError):
            OnnxDetector(file_of(outputs, metadata={"names": names}))


def test_a_free_size_is_the_files_or_640():
    outputs = {"output0": rows(300, 6, CENTRED, [0.9, 1])}
    free = file_of(outputs, shape=("n", 3, "h", "w"), metadata={"imgsz": "[32, 96]"})
    assert (OnnxDetector(free).height, OnnxDetector(free).width) == (32, 96)
    assert OnnxDetector(file_of(outputs, shape=("n", 3, "h", "w"))).width == 640


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (b"no model", "cannot load it"),
        (file_of({"logits": np.zeros((1, 9), np.float32)}), r"inputs images \[1, 3, 64, 64\]; outputs logits \[1, 9\]"),
        (file_of({"output0": np.zeros((1, 7, CELLS), np.float32)}, metadata={"task": "pose"}), "task 'pose'"),
        (file_of({"output0": rows(300, 6, CENTRED, [1, 1])}, shape=(2, 3, 64, 64)), "takes 2 pictures"),
        (file_of({"output0": rows(300, 6, CENTRED, [1, 1])}, shape=(1, 3, 9999, 64)), "64 x 9999"),
        (file_of({"output0": rows(300, 6, CENTRED, [1, 1])}, shape=(1, 1, 64, 64)), "not a known kind of detector"),
        (file_of({"x": np.zeros((1, 5, 6), np.float32), "y": np.zeros(3, np.float32)}), "outputs x .*, y"),
        (file_of(cases()["detr"][0], True, size_type=TensorProto.FLOAT), "not a known kind of detector"),
        (file_of(cases()["detr"][0], False), "not a known kind of detector"),
        (file_of({"output0": np.array([["a"]])}), "not an array of numbers|cannot"),
    ],
)
def test_any_other_file_is_refused_in_one_line_that_tells_what_was_found(bad, message):
    with pytest.raises(DataError, match=message) as told:
        OnnxDetector(bad)
    assert "\n" not in str(told.value)


def test_numbers_that_are_none_are_left_out():
    outputs, _ = cases()["yolov10"]
    outputs["output0"][0, :3] = [np.nan, 0, 9, 9, 0.9, 1]
    outputs["output0"][0, 3] = [0, 0, 9, 9, np.nan, 1]
    outputs["output0"][0, 4] = [0, 0, np.inf, 9, 0.9, 1]
    found = OnnxDetector(file_of(outputs)).detect(PHOTO)
    assert np.isfinite(found.boxes).all()
    assert (found.boxes <= [200, 100, 200, 100]).all()


def test_torch_is_not_needed(tmp_path):
    (tmp_path / "a.onnx").write_bytes(file_of(*cases()["detr"]))
    code = (
        "import sys, numpy as np; from scenegpi.onnx.detector import OnnxDetector\n"
        "found = OnnxDetector('a.onnx').detect(np.zeros((9, 9, 3), np.uint8)); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.shared
@pytest.mark.parametrize(("file", "least"), [("deimv2-femto-416", 0.33), ("yolox-nano-416", 0.33)])
def test_real_files_find_real_things(file, least, shared_data):
    """Of the annotated boxes of 26 VRD photos, so many meet one of ten detections; persons are called persons."""
    from scenegpi.data import open_dataset
    from scenegpi.vision.photos import open_photo, photo_boxes

    path = shared_data / "detectors" / f"{file}.onnx"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    dataset = open_dataset(shared_data / "vrd", split="test").drop_empty()
    detector = OnnxDetector(path, floor=0.01)
    total = met = persons = named = 0
    for place in range(0, len(dataset), 36):
        if (photo_path := dataset.image_path(place)) is None:
            continue
        photo, truth = open_photo(photo_path), dataset[place]
        found = detector.detect(photo)
        over = box_iou(photo_boxes(truth, photo), found.boxes[:10]) >= 0.5
        total, met = total + len(truth), met + int(over.any(1).sum())
        is_person = np.array([name == "person" for name in truth.names])
        persons += int(over[is_person].any(1).sum())
        named += int((over[is_person] & (found.labels[:10] == 0)).any(1).sum())
    assert met / total > least
    assert named / persons > 0.9
