"""What the page does with many pictures: choosing, tagging, predicting a folder, files of others, two annotators."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from urllib.parse import quote

import pytest
from PIL import Image

from scenegpi.bulk.digests import photo_digest
from scenegpi.data import open_dataset
from scenegpi.serve.exchanging import kappa
from scenegpi.serve.library import Library
from scenegpi.store import Store
from serve.serve_cases import call, running
from store.scenes import scene


@pytest.fixture(scope="module")
def store(data, tmp_path_factory):
    """A store with scores: in picture k every label and predicate has (k + 1) / 10."""
    folder = tmp_path_factory.mktemp("store") / "store"
    dataset = open_dataset(data)
    graphs = [
        graph.replace(scores=[(k + 1) / 10] * len(graph), relation_scores=[(k + 1) / 10] * len(graph.relations))
        for k, graph in enumerate(dataset)
    ]
    Store(folder).add(graphs, dataset.images.folders)
    return folder


@pytest.fixture(scope="module")
def url(store, tmp_path_factory):
    with running({"path": store, "annotations": tmp_path_factory.mktemp("notes")}) as (found, _):
        yield found


def send(url: str, content: bytes):
    request = urllib.request.Request(url, content, {"content-type": "application/octet-stream"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def images(url, **chosen):
    said = call(f"{url}/api/images?{'&'.join(f'{k}={quote(v)}' for k, v in chosen.items())}")[1]
    assert len(said["images"]) == said["total"]
    return [each["image"] for each in said["images"]]


def test_pictures_are_chosen_by_state_tag_score_and_doubt(url):
    facets = call(f"{url}/api/facets")[1]
    label, often = facets["labels"][0]
    found = call(f"{url}/api/search?q={quote(json.dumps(label))}&limit=200")[1]
    assert 0 < found["total"] <= often
    assert facets["predicates"]
    some = [hit for hit in found["hits"] if hit["score"] >= 0.35]
    assert call(f"{url}/api/search?q={quote(json.dumps(label))}&least=0.35")[1]["total"] == len(some) < found["total"]
    assert images(url, order="uncertain")[0] == 4  # a share of one half says least
    assert sorted(images(url, order="uncertain")) == images(url)
    graph = call(f"{url}/api/images/4")[1]["graph"]
    assert call(f"{url}/api/next?order=uncertain")[1]["image"] == 4
    assert call(f"{url}/api/annotations/4", {"graph": graph, "status": "done"}, "PUT")[0] == 200
    assert images(url, status="done") == [4]
    assert images(url, status="none") == [k for k in range(6) if k != 4]
    assert call(f"{url}/api/next?order=uncertain")[1]["image"] != 4
    assert call(f"{url}/api/facets")[1]["statuses"] == {"done": 1}
    status, said, _ = call(f"{url}/api/images/2/tags", {"tags": [" blurred", "blurred", "night"]}, "PUT")
    assert (status, said["tags"]) == (200, ["blurred", "night"])
    assert images(url, tag="night") == [2]
    assert images(url, tag="night", status="done") == []
    assert call(f"{url}/api/images/2")[1]["tags"] == ["blurred", "night"]
    assert call(f"{url}/api/facets")[1]["tags"] == [["blurred", 1], ["night", 1]]
    assert call(f"{url}/api/images/2/tags", {"tags": []}, "PUT")[1]["tags"] == []
    assert images(url, tag="night") == []
    assert call(f"{url}/api/images/99/tags", {"tags": []}, "PUT")[0] == 404


def test_similar_pictures_do_not_include_the_picture(url):
    hits = call(f"{url}/api/images/1/similar")[1]["hits"]
    assert hits
    assert 1 not in [hit["image"] for hit in hits]
    scores = [hit["score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert call(f"{url}/api/images/99/similar")[0] == 404


def test_a_graph_of_many_objects_is_drawn_by_its_best_relations(tmp_path):
    from scenegpi import SceneGraph, Vocabulary

    boxes = [[k, k, k + 10, k + 10] for k in range(1000)]
    links = [(k, k + 1, "on") for k in range(998, 900, -1)]
    graph = SceneGraph(boxes, ["man"] * 1000, Vocabulary(["man"], ["on"]), links, image_id=1, width=1100, height=1100)
    Store(tmp_path / "store").add([graph])
    with running({"path": tmp_path / "store"}) as (url, _):
        said = call(f"{url}/api/images/0?drawing=true")[1]
    assert len(said["colours"]) == 1000
    drawn = {int(k) for k in re.findall(r'data-box="(\d+)"', said["drawing"])}
    assert 20 < len(drawn) <= 30
    shown = {int(k) for some in re.findall(r'data-link="([\d ]+)"', said["drawing"]) for k in some.split()}
    assert {said["graph"]["relations"][k][end] for k in shown for end in ("subject", "object")} == drawn


def test_a_folder_is_predicted_then_searched_and_dropped_photos_too(data, tmp_path):
    photos = tmp_path / "photos"
    (photos / "day").mkdir(parents=True)
    for k, file in enumerate(sorted((data / "images").iterdir())[:3]):
        Image.open(file).save(photos / ("day" if k else ".") / f"{k}.jpg")
    (photos / "broken.jpg").write_bytes(b"no photo")
    fields = {"path": photos, "annotations": tmp_path / "notes", "work": tmp_path / "work"}

    def run(url, folder, **wanted):
        assert call(f"{url}/api/runs", {"folder": folder})[0] == 200
        for _ in range(6000):
            said = call(f"{url}/api/runs")[1]
            if said["state"] not in ("running", "indexing"):
                break
            time.sleep(0.05)
        assert {key: said[key] for key in wanted} == wanted

    with running(fields) as (url, _):
        assert call(f"{url}/api/folders")[1] == {"folders": {"day": 2}, "total": 4}
        assert not call(f"{url}/api/library")[1]["search"]
        assert call(f"{url}/api/runs", {"folder": "night"})[0] == 404
        run(url, "day", state="done", total=2, done=2, skipped=0)
        assert call(f"{url}/api/library")[1]["search"]
        names = {each["key"]: each["image"] for each in call(f"{url}/api/images")[1]["images"]}
        assert list(names) == ["0.jpg", "broken.jpg", "day/1.jpg", "day/2.jpg"]
        known = call(f"{url}/api/images/{names['day/1.jpg']}")[1]["graph"]
        assert known["objects"]
        hits = call(f"{url}/api/search?q={quote(json.dumps(known['objects'][0]['label']))}")[1]["hits"]
        assert names["day/1.jpg"] in [hit["image"] for hit in hits]
        assert call(f"{url}/api/images/0")[1]["graph"] is None
        status, said = send(f"{url}/api/dropped?name=..%2Fe%3Fvil.png", (photos / "0.jpg").read_bytes())
        assert (status, said) == (200, {"name": "dropped/e_vil.png", "image": 4})
        assert send(f"{url}/api/dropped?name=a.jpg", b"no photo")[0] == 422
        assert send(f"{url}/api/dropped?name=a.exe", b"no photo")[0] == 422
        run(url, "", state="done", total=5, done=5, skipped=1)
    with running(fields) as (url, _):  # it is all there again
        assert call(f"{url}/api/library")[1] | {"id": ""} == {
            "kind": "photos",
            "name": "photos",
            "total": 5,
            "search": True,
            "annotate": True,
            "predict": True,
            "tags": True,
            "model": None,
            "id": "",
        }
        found = call(f"{url}/api/images/0")[1]["graph"]["objects"]
        by_label = f"{url}/api/search?q={quote(json.dumps(found[0]['label']))}"
        assert 0 in [hit["image"] for hit in call(by_label)[1]["hits"]]
        (photos / "0.jpg").write_bytes(b"no photo any more")
        run(url, "", state="done", total=5, done=5, skipped=2)
        assert 0 not in [hit["image"] for hit in call(by_label)[1]["hits"]]  # that was the photo before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["photos", "work"]


@pytest.mark.parametrize("kind", ["store", "photos"])
def test_a_photo_that_was_replaced_is_shown_without_its_old_graph(tmp_path, kind):
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(2):
        Image.new("RGB", (100, 100), "red").save(photos / f"{number}.png")
    store = Store(tmp_path / "work" / "store")
    store.add([(scene(n, image_id=None), photo_digest(photos / f"{n}.png")) for n in range(2)], [photos])
    store.add([scene(2, (2, 2), image_id=None)])  # without a photo
    Image.new("RGB", (64, 48), "blue").save(photos / "1.png")
    fields = {"path": store.folder} if kind == "store" else {"path": photos, "work": tmp_path / "work"}
    with running(fields) as (url, _):
        old, new = (call(f"{url}/api/images/{n}?drawing=true")[1] for n in range(2))
        assert (old["changed"], len(old["graph"]["objects"])) == (False, 2)
        assert (new["changed"], new["photo"], new["graph"], new["drawing"]) == (True, True, None, None)
        assert (new["width"], new["height"]) == (64, 48)
        hits = {hit["image"]: hit for hit in call(f"{url}/api/search?q=man")[1]["hits"]}
        assert [(hits[n]["changed"], len(hits[n]["matches"]), hits[n]["photo"]) for n in range(2)] == [
            (False, 1, True),
            (True, 0, True),
        ]
        assert call(f"{url}/api/images/1/photo")[0] == 200
        assert call(f"{url}/api/images/1/similar")[1]["hits"] == []
        (similar,) = call(f"{url}/api/images/0/similar")[1]["hits"]
        assert (similar["image"], similar["changed"]) == (1, True)
        store.add([(scene(1, image_id=None), photo_digest(photos / "1.png"))])
        (number,) = [each["image"] for each in call(f"{url}/api/images")[1]["images"] if each["key"] == "1.png"]
        assert not call(f"{url}/api/images/{number}")[1]["changed"]
        (photos / "0.png").unlink()
        gone = call(f"{url}/api/images/0")[1]  # there is no other photo in its place
        assert (gone["changed"], gone["graph"] is None) == (False, False)


def test_files_of_others_begin_pictures_and_agree(data, tmp_path):
    first = {"path": data, "annotations": tmp_path / "one"}
    with running(first) as (url, _):
        graph = call(f"{url}/api/images/0")[1]["graph"]
        for number in (0, 1):
            whole = call(f"{url}/api/images/{number}")[1]["graph"]
            assert call(f"{url}/api/annotations/{number}", {"graph": whole, "status": "done"}, "PUT")[0] == 200
        files = {name: call(f"{url}/api/export/{name}")[1] for name in ("jsonl", "coco", "label-studio")}
    contents = {name: each if isinstance(each, bytes) else json.dumps(each).encode() for name, each in files.items()}
    names = {"jsonl": "a.jsonl", "coco": "b.json", "label-studio": "c.json"}
    for kind, content in contents.items():
        with running({"path": data, "annotations": tmp_path / kind}) as (url, _):
            assert call(f"{url}/api/annotations/1", {"graph": graph | {"relations": []}}, "PUT")[0] == 200
            status, said = send(f"{url}/api/import?name={names[kind]}", content)
            assert (status, said["imported"], said["kept"], said["unknown"]) == (200, 1, 1, 0), (kind, said)
            kept = call(f"{url}/api/annotations/0")[1]
            assert (kept["status"], kept["comment"]) == ("begun", f"imported from {names[kind]}")
            assert len(kept["graph"]["relations"]) == len(graph["relations"])
            assert kept["graph"]["image"] == graph["image"]
            status, said = send(f"{url}/api/agreement?name={names[kind]}", content)
            assert (status, said["pictures"]) == (200, 2)
            assert 0 < said["relations"] < 1
            assert said["predicates"] == 1
            assert send(f"{url}/api/import?name=x.json", b"{")[0] == 422
    assert kappa([("on", "on"), ("on", "in"), ("in", "in"), ("in", "in")]) == pytest.approx(0.5)
    assert kappa([("on", "on")]) is None


def test_files_of_others_begin_only_the_pictures_that_they_name(tmp_path):
    """Not one of the same name in another folder, nor one called by the number of another; in pixels of these photos."""
    for name in ("a/1.png", "b/1.png", "b/2.png", "7.png"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (200, 100)).save(path)

    def file(*images: tuple[int, str]) -> bytes:
        about = [{"id": k, "file_name": name, "width": 100, "height": 50} for k, name in images]
        boxes = [{"id": k, "image_id": k, "category_id": 1, "bbox": [10, 20, 30, 10]} for k, _ in images]
        words = [{"id": 1, "name": "dog"}]
        return json.dumps({"images": about, "annotations": boxes, "categories": words}).encode()

    with running({"path": tmp_path / "photos", "annotations": tmp_path / "notes"}) as (url, _):
        numbers = {each["key"]: each["image"] for each in call(f"{url}/api/images")[1]["images"]}
        status, said = send(f"{url}/api/import?name=x.json", file((7, "cat.png"), (3, "1.png"), (4, "x/2.png")))
        assert (status, said["imported"], said["unknown"]) == (200, 1, 2)
        assert set(call(f"{url}/api/annotations")[1]["statuses"]) == {"b/2.png"}
        graph = call(f"{url}/api/annotations/{numbers['b/2.png']}")[1]["graph"]
        assert (graph["image"]["width"], graph["objects"][0]["box"]) == (200, [20, 40, 80, 60])
        said = send(f"{url}/api/agreement?name=x.json", file((4, "x/2.png")))[1]
        assert said["objects"] == 1
        status, said = send(f"{url}/api/import?name=x.json", file((1, "b/1.png"), (2, "c/7.png"), (3, "d/7.png")))
        assert (status, said["detail"]) == (422, "x.json: two of its images are 7.png")
        assert set(call(f"{url}/api/annotations")[1]["statuses"]) == {"b/2.png"}


def test_a_thumbnail_follows_its_photo(tmp_path):
    """A browser asks again when the file has changed, so what it gets must be of the new file."""
    path = tmp_path / "a.jpg"
    library = None
    shown = []
    for colour in ("red", "blue"):
        Image.new("RGB", (400, 300), colour).save(path)
        library = library or Library(tmp_path)
        shown.append((library.tag(path), library.jpeg(path, "thumb")))
    assert shown[0][0] != shown[1][0]
    assert shown[0][1] != shown[1][1]
