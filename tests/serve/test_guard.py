"""Who may talk to the server, how much they may say, and what every answer carries."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenegpi.serve.settings import Access, split_host
from serve.serve_cases import BOXES, NAMES, call, running

TOKEN = "correct-horse-battery-staple"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "127.0.0.1:1",
        "",
        "localhost@evil:{port}",
    ],
)
def test_a_foreign_name_gets_nothing(server, host):
    port = urlsplit(server).port
    for path in ("/", "/health", "/api/images", "/static/base.css"):
        status, said, _ = call(server + path, headers={"host": host.format(port=port)})
        assert status in (400, 421), said


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_its_own_names_do(server, name):
    assert call(f"{server}/health", headers={"host": f"{name}:{urlsplit(server).port}"})[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://127.0.0.1"]
)
def test_no_other_site_reads_or_writes(server, origin):
    headers = {"origin": origin.format(port=urlsplit(server).port)}
    assert call(f"{server}/api/images", headers=headers)[0] == 403
    assert call(f"{server}/api/predict", {"boxes": BOXES, "labels": NAMES}, headers=headers)[0] == 403
    assert call(f"{server}/api/annotations/0", {"graph": {}}, "PUT", headers=headers)[0] == 403


def test_a_form_of_another_site_writes_nothing(server):
    assert (
        call(f"{server}/api/predict", {"boxes": BOXES, "labels": NAMES}, headers={"sec-fetch-site": "cross-site"})[0]
        == 403
    )
    assert (
        call(f"{server}/api/predict", {"boxes": BOXES, "labels": NAMES}, headers={"content-type": "text/plain"})[0]
        == 422
    )
    assert call(f"{server}/api/predict", {"boxes": BOXES, "labels": NAMES}, headers={"origin": server})[0] == 200


def test_every_answer_says_what_a_page_may_do(server):
    for path in ("/", "/docs", "/static/studio.js", "/api/images", "/api/nothing", "/openapi.json"):
        _, _, headers = call(server + path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/nothing.js",
        "/api/images/0/photo/../../../etc/passwd",
        "/api/images/..%2f..%2fetc%2fpasswd/photo",
    ],
)
def test_no_path_leads_to_other_files(server, path):
    parts = urlsplit(server)
    connection = http.client.HTTPConnection(parts.hostname, parts.port)
    connection.request("GET", path)  # as it stands: other clients tidy it up
    answer = connection.getresponse()
    text = answer.read()
    assert answer.status in (404, 405, 422), path
    assert b"root:" not in text


def test_a_large_body_is_refused_with_and_without_its_length(server):
    parts = urlsplit(server)
    connection = http.client.HTTPConnection(parts.hostname, parts.port)
    connection.request(
        "POST", "/api/predict", b"{}", {"content-length": str(10**12), "content-type": "application/json"}
    )
    assert connection.getresponse().status == 413

    def pieces():
        yield b'{"photo": "'
        for _ in range(30):
            yield b"A" * 2**20

    connection = http.client.HTTPConnection(parts.hostname, parts.port)
    try:
        connection.request("POST", "/api/predict", pieces(), {"content-type": "application/json"}, encode_chunked=True)
        status = connection.getresponse().status
    except (BrokenPipeError, ConnectionResetError):  # the server hung up on the way
        status = 413
    assert status == 413
    assert call(f"{server}/health")[0] == 200


@pytest.fixture(scope="module")
def guarded():
    with running({}, host="0.0.0.0", token=TOKEN) as (url, _):
        yield url


def test_the_token_opens_the_door(guarded):
    assert call(f"{guarded}/api/models")[0] == 401
    assert call(f"{guarded}/")[0] == 401
    assert call(f"{guarded}/health")[0] == 200
    assert call(f"{guarded}/api/models", headers={"authorization": "Bearer wrong"})[0] == 401
    assert call(f"{guarded}/api/models", headers={"authorization": f"Bearer {TOKEN}"})[0] == 200
    assert call(f"{guarded}/?token=wrong")[0] == 401
    status, _, headers = call(f"{guarded}/?token={TOKEN}")
    assert status == 200
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert call(f"{guarded}/api/models", headers={"cookie": cookie.split(";")[0]})[0] == 200
    assert call(f"{guarded}/api/models", headers={"cookie": 'a="b; ,=' + cookie.split(";")[0]})[0] in (200, 401)


def test_a_foreign_name_gets_nothing_even_with_the_token(guarded):
    headers = {"authorization": f"Bearer {TOKEN}", "host": f"evil.example:{urlsplit(guarded).port}"}
    assert call(f"{guarded}/api/models", headers=headers)[0] == 421


def test_another_address_gets_a_token_by_itself():
    assert Access.of("127.0.0.1", 1).token is None
    first, second = Access.of("0.0.0.0", 1), Access.of("192.168.1.5", 1)
    assert first.token
    assert second.token
    assert first.token != second.token
    assert len(first.token) >= 24


@given(st.text(max_size=40))
def test_any_host_header_can_be_read(text):
    name, port = split_host(text)
    assert port is None or isinstance(port, int)
    access = Access.of("127.0.0.1", 8000)
    if access.knows(text):
        assert name in ("127.0.0.1", "localhost", "::1")
