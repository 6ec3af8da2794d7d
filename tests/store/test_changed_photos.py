"""A photo that was replaced after `index` is recognised by its content, and never shown with the boxes of another."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from PIL import Image

from scenegpi.bulk.digests import photo_digest
from scenegpi.errors import DataError
from scenegpi.graph_json import to_dict
from scenegpi.store import Store
from scenegpi.store.contact_sheet import draw_hits
from store.scenes import scene


def changed(store: Store) -> set[str]:
    hits = store.images(100)
    found = store.changed({hit.image: store.photo(hit) for hit in hits})
    return {hit.key for hit in hits if hit.image in found}


@pytest.mark.parametrize("seed", range(5))
def test_changed_photos_are_those_of_other_content_than_indexed(tmp_path, seed):
    """Against a dictionary, through additions with and without a digest, replaced images and replaced photos."""
    rng, photos, known = random.Random(seed), tmp_path / "photos", {}
    photos.mkdir()
    for _ in range(6):
        some = rng.sample(range(8), 4)
        for number in some[:2]:
            (photos / f"{number}.png").write_bytes(rng.choice([b"one", b"two", b"six"]))
        graphs = []
        for number in some:
            now = photo_digest(photos / f"{number}.png")
            given = rng.choice([None, photo_digest(b"one"), "alone"])
            graphs.append(scene(number) if given == "alone" else (scene(number), given))
            known[str(number)] = now if given == "alone" else given
        Store(tmp_path / "s").add(graphs, [photos])
        for path in rng.sample(sorted(photos.iterdir()), 2):
            rng.choice([path.unlink, path.touch, lambda path=path: path.write_bytes(b"new")])()
        there = {path.stem: photo_digest(path) for path in photos.iterdir()}
        wrong = {key for key in there.keys() & known.keys() if known[key] not in (None, "-", there[key])}
        assert changed(Store(tmp_path / "s")) == wrong


@pytest.fixture
def folder(tmp_path):
    """A store of two photos, of which the second was replaced."""
    (tmp_path / "photos").mkdir()
    for number in range(2):
        Image.new("RGB", (100, 100), "red").save(tmp_path / "photos" / f"{number}.png")
    Store(tmp_path / "store").add([scene(0), scene(1, (0, 2))], [tmp_path / "photos"])
    Image.new("RGB", (64, 48), "blue").save(tmp_path / "photos" / "1.png")
    return tmp_path


def test_a_store_of_an_earlier_version_knows_no_photos(folder):
    for path in (folder / "store").glob("photos-*"):
        path.unlink()
    assert changed(Store(folder / "store")) == set()
    assert Store(folder / "store").search("man").images == 2
    Store(folder / "store").add([scene(1, (0, 2))])
    assert changed(Store(folder / "store")) == set()
    Image.new("RGB", (64, 48), "green").save(folder / "photos" / "1.png")
    Image.new("RGB", (64, 48), "green").save(folder / "photos" / "0.png")
    assert changed(Store(folder / "store")) == {"1"}  # the other is of the earlier version


def test_a_client_is_not_told_what_an_earlier_photo_showed(folder):
    pytest.importorskip("mcp")
    from scenegpi.serve.library import Library
    from scenegpi.serve.mcp import CHANGED, Tools

    tools = Tools(Library(folder / "store"))
    said = {each["name"]: each["text"] for each in tools.search("man")["found"]}
    assert said["1"] == CHANGED
    assert "man" in said["0"]


def test_a_studio_of_a_run_knows_the_photos_that_its_lines_were_predicted_from(folder):
    from scenegpi.serve.library import Library

    photos, lines = folder / "photos", []
    for number in range(2):
        graph = scene(number).replace(file=f"{number}.png")
        digest = f"{photo_digest(photos / f'{number}.png')}.-.x"
        lines.append(to_dict(graph) | {"source": f"{number}.png", "name": str(number), "digest": digest})
    (folder / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    Image.new("RGB", (64, 48), "black").save(photos / "0.png")
    library = Library(folder / "predictions.jsonl", photos)
    try:
        changed = {image: library.stored(image)[1] for image, *_ in library.called()}
        assert sorted(changed.values()) == [False, True]
        assert library.graph(next(image for image, wrong in changed.items() if wrong)) is None
    finally:
        library.close()


def test_a_damaged_table_of_photos_is_one_line(folder):
    (path,) = (folder / "store").glob("photos-*")
    for content in (b"", path.read_bytes()[:50], (folder / "store" / "labels-000001.parquet").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(DataError) as error:
            Store(folder / "store").search("man")
        assert "\n" not in str(error.value)


def sheet(folder: Path) -> tuple[list[str], str]:
    store = Store(folder / "store")
    names = draw_hits(store, store.search("man on *"), folder / "found.svg")
    return names, (folder / "found.svg").read_text()


def test_a_contact_sheet_has_no_boxes_on_a_photo_that_was_replaced(folder):
    names, drawn = sheet(folder)
    assert names == ["1.png"]
    assert "changed: 1.png" in drawn
    assert drawn.count("<image") == 2  # both photos are shown
    assert ">horse<" in drawn
    assert ">car<" not in drawn
    Store(folder / "store").add([scene(1, (0, 2))])
    names, drawn = sheet(folder)
    assert names == []
    assert "changed" not in drawn
    assert ">car<" in drawn
