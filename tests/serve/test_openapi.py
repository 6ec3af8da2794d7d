"""The interface as it describes itself: whatever a client sends, the server has no fault of its own."""

from __future__ import annotations

import re

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error

from serve.serve_cases import call


@pytest.fixture(scope="module")
def api(server):
    return schemathesis.openapi.from_url(f"{server}/openapi.json")


def test_no_request_is_a_fault_of_the_server(api):
    seen = set()
    for found in api.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy())
        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
        def check(case):
            case.call_and_validate(checks=[not_a_server_error])

        check()
        seen.add(operation.path)
    assert {"/api/predict", "/api/search", "/api/models", "/health", "/api/annotations/{image}"} <= seen


def test_the_page_of_the_interface_is_complete(server):
    _, said, _ = call(f"{server}/openapi.json")
    assert {"/api/predict", "/api/search", "/api/models", "/health"} <= set(said["paths"])
    for page in ("/", "/docs"):
        _, text, _ = call(server + page)
        sources = re.findall(rb'(?:src|href)="([^"]+)"', text)
        assert sources
        assert not [source for source in sources if b"//" in source]  # nothing from elsewhere
        for source in sources:
            if source.startswith(b"/static/"):
                assert call(server + source.decode())[0] == 200
