"""The interface as it describes itself: whatever a client sends, the server has no fault of its own."""

from __future__ import annotations

import re

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from serve.serve_cases import call


@pytest.fixture(scope="module")
def api(server):
    return schemathesis.openapi.from_url(f"{server}/openapi.json")


def test_no_request_is_a_fault_of_the_server(api):
    seen = set()
    for found in api.get_all_operations():
        operation = found.ok()

        @given(case=operation.as_strategy())
        @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
        def check(case):
            # All checks but one: a query, a file, a graph of any form may be refused with 422 and one line.
            case.call_and_validate(excluded_checks=[positive_data_acceptance])

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


def test_a_method_that_a_path_does_not_have(server):
    status, said, headers = call(f"{server}/api/annotations/0", method="DELETE")
    assert (status, headers["allow"], said) == (405, "GET, PUT", {"detail": "Method Not Allowed"})
    assert call(f"{server}/api/none")[0] == 404
