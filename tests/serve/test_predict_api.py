"""Prediction over HTTP: the answers of `Predictor`, for one client and for fifty at once."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from scenegpi import Predictor, SceneGraph
from scenegpi.prediction import Item, PredictOptions
from scenegpi.serve import batching
from scenegpi.serve.batching import EncodedPhotos, FullError, Predictions
from scenegpi.serve.settings import Bounds
from scenegpi.vision import photos
from serve.serve_cases import BOXES, NAMES, call, encoded


def predict(server, **body):
    return call(f"{server}/api/predict", body)


def test_the_answer_is_that_of_the_predictor(server):
    status, said, _ = predict(
        server, boxes=BOXES, labels=NAMES, width=100, height=100, model="vg150-layout", alternatives=3, drawing=True
    )
    assert status == 200
    own = Predictor("vg150-layout", options=PredictOptions(distributions=True))(
        boxes=BOXES, labels=NAMES, width=100, height=100
    )
    found = SceneGraph.from_dict(said["graph"])
    assert found.names == own.names
    assert found.relations.tolist() == own.relations.tolist()
    assert np.allclose(found.triplet_scores(), own.triplet_scores(), atol=1e-5)
    assert len(said["pairs"]) == 6
    for pair in said["pairs"]:
        shares = [share for _, share in pair["predicates"]]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) <= pair["related"] + 1e-3
    assert said["drawing"].startswith("<figure")
    assert len(said["colours"]) == 3


def test_a_photo_with_boxes_is_read(server, data):
    photo = encoded(data / "images" / "1.jpg")
    image = Image.open(data / "images" / "1.jpg")
    box = [[0, 0, image.width / 2, image.height], [image.width / 2, 0, image.width, image.height]]
    status, said, _ = predict(server, photo=photo, boxes=box, model="vg150-photo")
    assert status == 200
    assert said["photo_read"]
    own = Predictor("vg150-photo")(data / "images" / "1.jpg", boxes=box)
    assert [each["label"] for each in said["graph"]["objects"]] == own.names
    one = predict(server, photo=photo, boxes=box, labels=["hat", None], model="vg150-photo")[1]
    assert one["graph"]["objects"][0]["label"] == "hat"
    assert one["graph"]["objects"][1]["label"] == own.names[1]


def test_a_photo_is_read_once_for_many_boxes_and_again_when_it_changes(tmp_path, monkeypatch):
    read = []
    whole = photos._opened
    monkeypatch.setattr(photos, "_opened", lambda path: read.append(path) or whole(path))
    kept = EncodedPhotos()
    path = tmp_path / "a.png"
    Image.new("RGB", (20, 10)).save(path)
    first = kept.of(path)
    assert kept.of(path) is first
    assert len(read) == 1
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "a.png").write_bytes(path.read_bytes())
    assert kept.of(tmp_path / "b" / "a.png") is first  # by content, as uploads are
    Image.new("RGB", (30, 10)).save(path)
    assert kept.of(path).size == (30, 10)
    path.write_bytes(b"no photo")
    assert kept.of(path) == path  # whoever predicts says what is wrong
    assert kept.of(None) is None
    monkeypatch.setattr(batching, "KEPT_BYTES", 1000)
    for wide in range(1, 40):
        Image.new("RGB", (wide, 10)).save(path)
        kept.of(path)
        assert kept.bytes <= 1000 + 30 * wide


def test_attention_belongs_to_the_same_boxes(server):
    _, said, _ = call(f"{server}/api/attention", {"boxes": BOXES, "labels": NAMES})
    rows = np.array(said["neighbours"])
    assert rows.shape == (3, 3)
    assert np.allclose(rows.sum(1), 1, atol=1e-4)
    assert np.allclose(np.diag(rows), 0)
    assert np.isclose(sum(said["nodes"]), 1, atol=1e-4)


def test_names_that_the_model_does_not_know_are_left_out_and_counted(server):
    _, said, _ = predict(server, boxes=BOXES, labels=["man", "quetzalcoatlus", "hat"], model="vg150-layout")
    assert said["kept"] == [0, 2]
    assert any("quetzalcoatlus" in note for note in said["notes"])


def picture(width, height, kind="PNG") -> bytes:
    out = io.BytesIO()
    Image.new("L", (width, height)).save(out, kind)
    return out.getvalue()


def test_problems_are_one_line_and_name_no_folder(server):
    import base64

    cases = [
        ({}, 422),
        ({"boxes": []}, 422),
        ({"boxes": [[0, 0, 1]]}, 422),
        ({"boxes": [[0, 0, 1, 1]] * 101, "labels": ["man"] * 101}, 422),
        ({"boxes": BOXES, "labels": ["man"]}, 422),
        ({"boxes": BOXES, "labels": NAMES, "model": "../../etc"}, 422),
        ({"boxes": BOXES, "labels": NAMES, "more": 1}, 422),
        ({"boxes": BOXES, "labels": [None, "man", "hat"]}, 422),
        ({"photo": "%%%"}, 422),
        ({"photo": base64.b64encode(b"hello").decode()}, 422),
        ({"photo": base64.b64encode(picture(9000, 9000)).decode(), "boxes": BOXES}, 422),
        ({"image": 10**9}, 422),
        ({"boxes": BOXES, "labels": NAMES, "informative": 2}, 422),
    ]
    for body, expected in cases:
        status, said, _ = predict(server, **body)
        assert status == expected, (body, said)
        if isinstance(said["detail"], str):
            assert "\n" not in said["detail"]
            assert "/tmp" not in said["detail"]
    assert call(f"{server}/api/predict", None, "POST", {"content-type": "application/json"})[0] == 422


def test_a_photo_alone_is_enough(server, data):
    status, said, _ = predict(server, photo=encoded(data / "images" / "1.jpg"))
    assert status == 200
    assert said["graph"]["image"]["width"] > 0


def test_files_of_a_graph(server):
    _, said, _ = predict(server, boxes=BOXES, labels=NAMES)
    for format, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("graphml", b"<?xml"), ("json", None)):
        status, content, _ = call(f"{server}/api/draw", {"graph": said["graph"], "format": format})
        assert status == 200
        assert start is None or bytes(content).startswith(start)
    assert call(f"{server}/api/draw", {"graph": {"objects": 3}})[0] == 422


def test_fifty_clients_at_once_get_the_answers_of_the_serial_run(server):
    rng = np.random.default_rng(0)
    words = ["man", "horse", "hat", "tree", "dog", "bench"]
    bodies = []
    for _ in range(50):
        n = int(rng.integers(2, 8))
        corners = np.sort(rng.uniform(0, 100, (n, 2, 2)), axis=1).reshape(n, 4)
        bodies.append(
            {
                "boxes": corners.tolist(),
                "labels": rng.choice(words, n).tolist(),
                "width": 100,
                "height": 100,
                "informative": float(rng.choice([0.0, 0.3])),
            }
        )
    serial = [predict(server, **body) for body in bodies]
    gate = threading.Barrier(50)

    def at_once(body):
        gate.wait()
        return predict(server, **body)

    with ThreadPoolExecutor(50) as pool:
        together = list(pool.map(at_once, bodies))
    for (status, alone, _), (other, among, _) in zip(serial, together, strict=True):
        assert (status, other) == (200, 200)
        first, second = SceneGraph.from_dict(alone["graph"]), SceneGraph.from_dict(among["graph"])
        assert first.names == second.names
        assert np.allclose(first.boxes, second.boxes)
        assert sorted(map(tuple, first.relations.tolist())) == sorted(map(tuple, second.relations.tolist()))
        assert np.allclose(first.triplet_scores(), second.triplet_scores(), atol=1e-5)


def boxes_graph():
    from scenegpi.data.detector_results import graph_of

    return Item(None, graph_of(np.array(BOXES, dtype=float), None, labels=NAMES, width=100, height=100))


def test_what_waits_goes_together_and_too_much_is_refused():
    predictions = Predictions(Bounds(queue=8, batch=32))
    futures = [predictions.submit("vg150-layout", boxes_graph()) for _ in range(8)]
    with pytest.raises(FullError):
        predictions.submit("vg150-layout", boxes_graph())
    predictions.start()
    graphs = [future.result(60).graph for future in futures]
    assert predictions.batches == 1
    assert all(graph == graphs[0] for graph in graphs)
    predictions.stop()


def test_a_fault_of_one_request_is_not_that_of_others():
    predictions = Predictions(Bounds())

    def fault(*_):
        raise RuntimeError("broken")

    bad = predictions.submit("vg150-layout", boxes_graph(), fault)
    missing = predictions.submit("no such model", boxes_graph())
    good = predictions.submit("vg150-layout", boxes_graph())
    predictions.start()
    assert good.result(60).graph is not None
    with pytest.raises(RuntimeError):
        bad.result(60)
    with pytest.raises(Exception, match="no such model"):
        missing.result(60)
    predictions.stop()


def test_requests_beyond_the_queue_get_429(data):
    from serve.serve_cases import running

    with running({"bounds": Bounds(queue=1, batch=1, seconds=30)}) as (url, _), ThreadPoolExecutor(24) as pool:
        body = {"boxes": BOXES, "labels": NAMES}
        answers = list(pool.map(lambda _: call(f"{url}/api/predict", body), range(24)))
        assert {status for status, _, _ in answers} <= {200, 429}
        assert 200 in {status for status, _, _ in answers}
        refused = [headers for status, _, headers in answers if status == 429]
        assert all(headers["retry-after"] for headers in refused)
        assert call(f"{url}/api/predict", body)[0] == 200
