"""The interface as it describes itself: whatever a client sends, the server has no fault of its own."""

from __future__ import annotations

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error

from serve.serve_cases import call


@pytest.fixture(scope="module")
def api(server):
    return schemathesis.openapi.from_url(f"{server}/openapi.json")


schema = schemathesis.pytest.from_fixture("api")


@schema.parametrize()
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_request_is_a_fault_of_the_server(case):
    response = case.call()
    case.validate_response(response, checks=(not_a_server_error,))


def test_the_page_of_the_interface_is_complete(server):
    _, said, _ = call(f"{server}/openapi.json")
    assert {"/api/predict", "/api/search", "/api/models", "/health"} <= set(said["paths"])
    _, page, _ = call(f"{server}/docs")
    assert b"http" not in page.replace(b"http-equiv", b"").lower() or b"//" not in page  # nothing from elsewhere
    for name in ("docs.js", "page.js", "gallery.js", "base.css", "studio.css"):
        assert call(f"{server}/static/{name}")[0] == 200
