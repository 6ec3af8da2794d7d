"""One server for the tests of a file."""

from __future__ import annotations

import pytest

from serve.serve_cases import running, scenes


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return scenes(tmp_path_factory.mktemp("scenes") / "scenes")


@pytest.fixture(scope="module")
def server(data, tmp_path_factory):
    fields = {"path": data, "annotations": tmp_path_factory.mktemp("annotations"), "model": None}
    with running(fields) as (url, _):
        yield url
