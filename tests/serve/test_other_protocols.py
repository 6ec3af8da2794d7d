"""Clients of other protocols: a language model's over stdin and stdout, and Label Studio's."""

from __future__ import annotations

import json
import os
import sys

import anyio
import pytest

from scenegpi.data import write_jsonl
from scenegpi.data.export.data_sets import labelling_config
from scenegpi.serve.label_studio import LabelStudio, interface
from scenegpi.store import Store
from serve.serve_cases import call, running
from store.scenes import WORDS, scene


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    from PIL import Image

    folder = tmp_path_factory.mktemp("pictures")
    (folder / "photos").mkdir()
    for number in (1, 2, 3):
        Image.new("RGB", (100, 100), (number * 60, 90, 30)).save(folder / "photos" / f"{number}.png")
    graphs = [scene(1), scene(2, (0, 2), attributes=[[], ["red"]]), scene(3, scores=[0.9, 0.8])]
    Store(folder / "store").add(graphs, [folder / "photos"])
    write_jsonl(folder / "graphs.jsonl", graphs)
    return folder


def test_a_client_finds_pictures_with_a_man_on_a_horse(folder):
    """The real client of the mcp package, the real command, over stdin and stdout."""
    mcp = pytest.importorskip("mcp")
    command = ["-c", "from scenegpi.cli import main; main()", "mcp", str(folder / "store")]

    async def ask():
        async with mcp.Client(
            mcp.StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        ) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            found = await client.call_tool("search", {"query": "a man on a horse"})
            red = await client.call_tool("search", {"query": "red car"})
            said = await client.call_tool("describe", {"picture": "1"})
            picture = await client.call_tool("open_picture", {"picture": "3"})
            outside = await client.call_tool("open_picture", {"picture": "../photos/1.png"})
            wrong = await client.call_tool("search", {"query": ""})
            return names, found, red, said, picture, outside, wrong

    names, found, red, said, picture, outside, wrong = anyio.run(ask)
    assert names == {"predict", "describe", "search", "open_picture"}
    hits = json.loads(found.content[0].text)
    assert [hit["name"] for hit in hits["found"]] == ["1", "3"]
    assert hits["understood"] == "man on horse"
    assert [hit["name"] for hit in json.loads(red.content[0].text)["found"]] == ["2"]
    assert "The man (center) is on the horse (bottom)." in said.content[0].text
    assert picture.content[0].mime_type == "image/jpeg"
    assert outside.is_error
    assert "no such picture" in outside.content[0].text
    assert wrong.is_error
    assert "nothing to search for" in wrong.content[0].text
    assert str(folder) not in outside.content[0].text


def test_label_studio_gets_pre_annotations(folder, tmp_path):
    config = labelling_config(WORDS).replace('name="label"', 'name="things"').replace("$image", "$picture")
    body = {"tasks": [{"id": 5, "data": {"picture": "/data/local-files/?d=in/photos/1.png"}}, {"id": 6, "data": {}}]}
    fields = {"path": folder / "photos", "annotations": None, "model": None, "label_studio": True}
    with running(fields) as (url, _):
        assert call(f"{url}/health")[0] == 200
        status, answer, _ = call(f"{url}/setup", {"project": "1", "schema": config})
        assert (status, "model_version" in answer) == (200, True)
        status, answer, _ = call(f"{url}/predict", body | {"label_config": config, "project": "1.2"})
        assert status == 200
        first, second = answer["results"]
        assert second["result"] == []
        tools = pytest.importorskip("label_studio_sdk.label_interface").LabelInterface(config)
        for each in first["result"]:
            assert each["type"] == "relation" or (each["from_name"], each["to_name"]) == ("things", "image")
        assert tools.is_valid
        assert call(f"{url}/predict", {"tasks": [{}] * 1000})[0] == 422
        assert call(f"{url}/predict", {"tasks": "x"})[0] == 422
    with running(fields | {"label_studio": False}) as (url, _):
        assert call(f"{url}/predict", body)[0] in (404, 405)


@pytest.mark.parametrize(
    ("address", "there"),
    [
        ("/data/local-files/?d=1.png", True),
        ("/data/local-files/?d=some/where/photos%2F1.png", True),
        ("http://host/data/upload/1/1.png", True),
        ("/data/local-files/?d=../graphs.jsonl", False),
        ("/etc/passwd", False),
        ("", False),
    ],
)
def test_addresses_lead_into_the_folder_only(folder, address, there):
    from scenegpi.data.images import ImageFolders

    found = LabelStudio(None, ImageFolders([folder / "photos"])).find(address)
    assert (found == folder / "photos" / "1.png") == there
    assert found is None or there


def test_an_interface_names_its_tags():
    assert interface(labelling_config(WORDS)) == (("label", "image", "attributes"), "image")
    assert interface("<View><Image value='$x' name='i'/><RectangleLabels toName='i' name='r&amp;'>") == (
        ("r&", "i", "attributes"),
        "x",
    )
    assert interface("<" * 1000) == (("label", "image", "attributes"), "image")
