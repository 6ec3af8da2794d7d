"""Who may talk to the server, how much they may say, and what every answer carries."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenegpi.commands.serve import _listen
from scenegpi.errors import DataError
from scenegpi.serve.guard import PromptProtocol
from scenegpi.serve.settings import Access, Bounds, split_host
from scenegpi.store import QueryError, Store
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


def test_no_other_site_makes_it_work_by_a_picture_or_a_link(server):
    foreign = {"sec-fetch-site": "cross-site"}
    for path in ("/api/search?q=person", "/api/images", "/api/export/coco", "/api/images/0/photo", "/health"):
        assert call(server + path, headers=foreign)[0] == 403
        assert call(server + path, headers={"sec-fetch-site": "same-site"})[0] == 403  # another port of this machine
        assert call(server + path, headers={"sec-fetch-site": "same-origin"})[0] in (200, 422)
    assert call(f"{server}/", headers=foreign)[0] == 200  # a link leads here


def test_a_photo_is_asked_for_again_and_sent_once(server):
    status, _, headers = call(f"{server}/api/images/0/photo?size=thumb")
    assert (status, headers["cache-control"]) == (200, "private, no-cache")
    known = {"if-none-match": headers["etag"]}
    assert call(f"{server}/api/images/0/photo?size=thumb", headers=known)[0] == 304
    assert call(f"{server}/api/images/0/photo", headers=known)[0] == 200
    assert call(f"{server}/api/images/1/photo?size=thumb", headers=known)[0] == 200


def test_a_socket_that_answers_at_once():
    with _listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP  # asyncio sets TCP_NODELAY only then


def test_a_request_that_does_not_arrive_ends(data, monkeypatch):
    monkeypatch.setattr(PromptProtocol, "seconds", 0.2)
    with running({"bounds": Bounds(arriving=0.2)}) as (url, _):
        parts = urlsplit(url)
        head = f"POST /api/predict HTTP/1.1\r\nHost: {parts.netloc}\r\ncontent-type: application/json\r\n"
        for sent in ("", "GET / HT", head, f"{head}content-length: 9\r\n\r\n{{"):
            with socket.create_connection((parts.hostname, parts.port)) as half:
                half.settimeout(60)
                half.sendall(sent.encode())
                answer = b"".join(iter(lambda: half.recv(4096), b""))
            assert answer.startswith(b"HTTP/1.1 408") if sent.endswith("{") else answer == b""


def test_a_websocket_is_an_ordinary_request_here(server, caplog):
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-key": "x", "sec-websocket-version": "13"}
    assert call(f"{server}/health", headers=upgrade)[0] == 200
    assert caplog.records == []


def test_searches_are_few_at_a_time_and_end_with_their_client(data, monkeypatch):
    begun, released = threading.Semaphore(0), threading.Event()
    whole = Store.search

    def slow(self, q, limit, offset, stop, *more):
        if q == "slow":
            begun.release()
            while not released.wait(0.01):
                if stop._stopped:
                    ended.append(q)
                    raise QueryError("stopped")
        return whole(self, "person", limit, offset, stop, *more)

    ended: list[str] = []
    monkeypatch.setattr(Store, "search", slow)
    with running({"path": data, "bounds": Bounds(searches=2)}) as (url, _):
        parts = urlsplit(url)
        clients = [http.client.HTTPConnection(parts.hostname, parts.port) for _ in range(2)]
        for client in clients:
            client.request("GET", "/api/search?q=slow")
            assert begun.acquire(timeout=60)
        assert call(f"{url}/api/search?q=person")[0] == 429
        assert call(f"{url}/api/images")[0] == 200  # nothing else waits for them
        for client in clients:
            client.close()
        while len(ended) < 2:
            time.sleep(0.01)
        while call(f"{url}/api/search?q=person")[0] == 429:
            time.sleep(0.01)
        assert call(f"{url}/api/search?q=person")[0] == 200
        released.set()


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


def test_the_scheme_of_a_token_is_named_in_any_case(guarded):
    assert call(f"{guarded}/api/models", headers={"authorization": f"bearer {TOKEN}"})[0] == 200
    assert call(f"{guarded}/api/models", headers={"authorization": TOKEN})[0] == 401
    assert (
        "HTTPBearer"
        in call(f"{guarded}/openapi.json", headers={"authorization": f"bearer {TOKEN}"})[1]["components"][
            "securitySchemes"
        ]
    )


@pytest.mark.parametrize("token", ["a b", "a;b", "a&b=c#d", "pässword", "", "x" * 201])
def test_a_token_that_no_link_can_carry_is_refused(token):
    with pytest.raises(DataError, match="--token"):
        Access.of("127.0.0.1", 1, token)


def test_a_proxy_in_front_has_its_own_name_and_scheme():
    public = "https://studio.example"
    with running({}, token=TOKEN, public=public) as (url, _):
        assert Access.of("127.0.0.1", 1, None, public).url.startswith(f"{public}/?token=")
        key = {"authorization": f"Bearer {TOKEN}", "host": "studio.example"}
        body = {"boxes": BOXES, "labels": NAMES}
        assert call(f"{url}/api/predict", body, headers=key | {"origin": public})[0] == 200
        assert call(f"{url}/api/predict", body, headers=key | {"origin": "http://studio.example:1"})[0] == 403
        assert call(f"{url}/api/predict", body, headers=key | {"origin": "https://evil.example"})[0] == 403
        assert call(f"{url}/api/models", headers=key | {"host": "evil.example"})[0] == 421
        assert call(f"{url}/api/models", headers={"host": "studio.example"})[0] == 401
        _, _, headers = call(f"{url}/?token={TOKEN}", headers={"host": "studio.example"})
        assert headers["set-cookie"].endswith("; Secure")
    for wrong in ("studio.example", "ftp://studio.example", "https://", "https://studio.example/path"):
        with pytest.raises(DataError, match="--public"):
            Access.of("127.0.0.1", 1, None, wrong)


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
