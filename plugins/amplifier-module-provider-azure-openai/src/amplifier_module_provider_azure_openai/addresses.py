"""Where a resource's API is: of what people configure as the endpoint, and of the version they name."""

from __future__ import annotations

from typing import Final
from urllib.parse import SplitResult, urlencode, urlsplit, urlunsplit

from amplifier_kit.vendors.addresses import check_address

__all__ = ["address_of", "path_of"]

_ROOT: Final = "/openai"
_V1: Final = "/openai/v1"


def address_of(endpoint: str, api_version: str | None) -> str:
    """Return the address of the API at an endpoint, which may be the resource's or have the API's path already.

    A dated version has its own path; all others are the address without versions.

    Raises:
        ValueError: the endpoint is no http or https address with a host.
    """
    parts = urlsplit(check_address(endpoint, "azure_endpoint"))
    path = parts.path.rstrip("/")
    if not path.endswith((_ROOT, _V1)):
        path += _ROOT
    if path.endswith(_ROOT) and not _is_dated(api_version):
        path += "/v1"
    return urlunsplit(SplitResult(parts.scheme, parts.netloc, path, parts.query, ""))


def path_of(path: str, api_version: str | None) -> str:
    """Return a path with the version that it is asked in."""
    if api_version is None:
        return path
    return f"{path}?{urlencode({'api-version': api_version})}"


def _is_dated(api_version: str | None) -> bool:
    """Tell whether a version is one of those that are named by their date."""
    return api_version is not None and api_version[0].isdigit()
