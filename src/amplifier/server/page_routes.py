"""The web page: files of this package, which ask no other host for anything."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["page_routes"]

_FILES: Final = {
    "/": ("index.html", "text/html"),
    "/page/app.js": ("app.js", "text/javascript"),
    "/page/views.js": ("views.js", "text/javascript"),
    "/page/style.css": ("style.css", "text/css"),
}

# no text of a model becomes markup; were it to, nothing of it would run or leave
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
    " img-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
    " require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def page_routes() -> Iterator[Route]:
    """Yield the addresses of the page; it holds nothing of anybody, and asks for a token."""
    for path, (name, media_type) in _FILES.items():
        yield _route(path, name, media_type)


def _route(path: str, name: str, media_type: str) -> Route:
    content = files("amplifier.server").joinpath("page", name).read_bytes()

    async def show_file(_request: Request) -> Response:
        return Response(content, headers=_HEADERS, media_type=media_type)

    return Route(path, show_file, methods=["GET"])
