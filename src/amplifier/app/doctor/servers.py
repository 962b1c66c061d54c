"""Checks of a server that runs somewhere: whether it answers, is ready, and knows the token that a person has."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from time import time
from typing import Final
from urllib.parse import urlsplit

import attrs

from amplifier.app.doctor.findings import DoctorFinding, broken, fine, warning
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["check_server"]

_AREA: Final = "server"
_MAX_BYTES: Final = 100_000
_MAX_SKEW: Final = 30.0


@attrs.frozen
class _Answer:
    status: int
    data: JSONObject
    date: str | None


def check_server(
    url: str, token: str | None, timeout: float
) -> Iterator[DoctorFinding]:
    """Ask a server what it says of itself; a redirect is followed nowhere, for it would take the token along.

    Args:
        url: where it is: `http://` or `https://`, a host, perhaps a port.
        token: with which the person calls; `None` for none.
        timeout: seconds for each answer.
    """
    try:
        alive = _ask(url, "/healthz", None, timeout)
        ready = _ask(url, "/readyz", None, timeout)
    except (OSError, ValueError, http.client.HTTPException) as error:
        message = f"{url} does not answer: {str(error) or type(error).__name__}"
        yield broken(_AREA, message, "is 'amplifier serve' running there?")
        return
    if alive.status != 200 or alive.data.get("status") != "ok":
        message = f"{url} answers, and is no server of Amplifier"
        yield broken(_AREA, message, "correct the address")
        return
    yield fine(_AREA, f"{url} runs")
    yield _readiness(ready)
    yield from _surroundings(url, alive)
    yield from _token(url, token, timeout)


def _readiness(ready: _Answer) -> DoctorFinding:
    if ready.status == 200:
        return fine(_AREA, "its store takes what is written, and its folder is there")
    error = ready.data.get("error")
    reason = error.get("message") if isinstance(error, dict) else None
    message = f"it is not ready: {reason or f'status {ready.status}'}"
    return broken(
        _AREA, message, "read its log, then 'amplifier doctor --server STORE'"
    )


def _surroundings(url: str, alive: _Answer) -> Iterator[DoctorFinding]:
    parts = urlsplit(url)
    if parts.scheme == "http" and not _is_here(parts.hostname or ""):
        remedy = "amplifier serve --certificate, or a proxy with TLS"
        yield warning(_AREA, "tokens go over the network unencrypted", remedy)
    if alive.date is not None:
        # leases and the ends of tokens are times
        skew = abs(parsedate_to_datetime(alive.date).timestamp() - time())
        if skew > _MAX_SKEW:
            message = f"its clock differs from this one by {skew:.0f} seconds"
            yield warning(_AREA, message, "set both by NTP")


def _token(url: str, token: str | None, timeout: float) -> Iterator[DoctorFinding]:
    if token is None:
        remedy = "put a token into AMPLIFIER_SERVER_TOKEN to have it tried"
        yield warning("token", "none was given", remedy)
        return
    me = _ask(url, "/me", token, timeout)
    if me.status != 200:
        message = f"the server does not know the token (status {me.status})"
        yield broken("token", message, "amplifier token list, and amplifier token add")
        return
    who = [me.data.get(key) for key in ("name", "role", "tenant")]
    yield fine("token", "{} is {} of tenant {}".format(*who))


def _ask(url: str, path: str, token: str | None, timeout: float) -> _Answer:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("expected http:// or https:// and a host")
    kind = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
    connection = kind[parts.scheme](parts.hostname, parts.port, timeout=timeout)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        connection.request("GET", parts.path.rstrip("/") + path, headers=headers)
        answer = connection.getresponse()
        body = answer.read(_MAX_BYTES)
    finally:
        connection.close()
    try:
        data: JSONValue = json.loads(body)
    except ValueError:
        data = None
    date = answer.getheader("date")
    return _Answer(answer.status, data if isinstance(data, dict) else {}, date)


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
