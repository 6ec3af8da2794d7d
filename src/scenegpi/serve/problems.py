"""Errors of the interface: one line each, and declared as such."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.routing import Match

from scenegpi.errors import DataError
from scenegpi.serve import schemas
from scenegpi.serve.annotations import NotWrittenError
from scenegpi.store.store import NoImageError

SAID = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "A request from another site.",
    404: "Not found.",
    408: "The request did not arrive in time.",
    409: "Changed elsewhere; nothing was saved.",
    413: "The body is too large.",
    421: "The Host header does not name this server.",
    422: "Input that cannot be used; `detail` says why in one line.",
    429: "Too many requests are waiting.",
    503: "Not answered in time.",
    507: "The disk can't be written to; nothing was saved.",
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers that a route declares."""
    return {status: {"description": SAID[status], "model": schemas.Problem} for status in statuses}


BINARY = {"schema": {"type": "string", "format": "binary"}}
BODY = {"requestBody": {"content": {"application/octet-stream": BINARY}, "required": True}}
"""A file as the body of a request."""


def file_answer(*kinds: str) -> dict[int | str, dict[str, Any]]:
    """A file as the body of an answer."""
    return {200: {"description": "The file.", "content": dict.fromkeys(kinds, BINARY)}}


EVERYWHERE = problems(400, 401, 403, 408, 413, 421, 422)
"""Error answers of every route."""


def invalid(_: Request, error: Any) -> JSONResponse:
    """An invalid request: its first two errors, in one line."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(each["type"] == "json_invalid" for each in found):
        return JSONResponse({"detail": "the body is not JSON"}, status_code=422)
    said = [f"{'.'.join(map(str, each['loc'][1:])) or 'body'}: {each['msg']}" for each in found[:2]]
    more = f"; and {len(found) - 2} more" if len(found) > 2 else ""
    return JSONResponse({"detail": "; ".join(said) + more}, status_code=422)


def not_allowed(request: Request, _: Any) -> JSONResponse:
    """The response to a wrong method; `allow` lists the path's methods, each of which is a separate route."""
    asked = ((method, {**request.scope, "method": method}) for method in ("DELETE", "GET", "POST", "PUT"))
    routes = request.app.routes
    methods = [name for name, scope in asked if any(route.matches(scope)[0] == Match.FULL for route in routes)]
    return JSONResponse({"detail": "Method Not Allowed"}, 405, {"allow": ", ".join(methods)})


def unusable(_: Request, error: Any) -> JSONResponse:
    """One line that does not leak server paths."""
    status = 404 if isinstance(error, NoImageError) else 507 if isinstance(error, NotWrittenError) else 422
    return JSONResponse({"detail": one_line(error)}, status_code=status)


def one_line(error: Exception) -> str:
    """The message of an error, without the path of its file."""
    return error.message if isinstance(error, DataError) else str(error)
