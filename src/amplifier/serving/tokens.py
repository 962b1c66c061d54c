"""Who may call the server: bearer tokens, and what each of them may do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from hmac import compare_digest
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

import anyio
import attrs
from starlette.datastructures import Headers

from amplifier.serving.errors import RequestError
from amplifier_sdk.bounds import integer
from amplifier_sdk.errors import ConfigError, Problem

if TYPE_CHECKING:
    from amplifier.serving.sessions import ServedSession

__all__ = ["Client", "Clients", "Token", "bearer_of", "refused"]

_MIN_SECRET: Final = 16
_SCHEME: Final = "bearer"


def _long_enough(_: object, attribute: attrs.Attribute[str], value: str) -> None:
    if len(value) < _MIN_SECRET:
        raise ValueError(
            f"{attribute.name} is {len(value)} characters long; a token has at least {_MIN_SECRET}"
        )


@attrs.frozen(kw_only=True)
class Token:
    """A bearer token, and what whoever has it may do. Its sessions are invisible to other tokens.

    Args:
        name: who has it, for logs and metrics.
        secret: what is sent in `Authorization: Bearer …`; at least 16 characters.
        max_sessions: open at once.
        max_turns: running or queued at once.
        max_streams: read at once.
        max_requests: in a minute.
        may_approve: whether it may answer what its sessions ask a person; without that, what needs approval is denied.
        may_read_metrics: whether it may read what the server did for everybody.
    """

    name: str
    secret: str = attrs.field(repr=False, validator=_long_enough)
    max_sessions: int = attrs.field(default=100, validator=integer(1))
    max_turns: int = attrs.field(default=100, validator=integer(1))
    max_streams: int = attrs.field(default=100, validator=integer(1))
    max_requests: int = attrs.field(default=600, validator=integer(1))
    may_approve: bool = False
    may_read_metrics: bool = False


@attrs.define(eq=False)
class Client:
    """What the holder of one token does at the moment."""

    token: Token
    sessions: dict[str, ServedSession] = attrs.field(factory=dict)
    turns: int = 0
    _streams: set[anyio.CancelScope] = attrs.field(factory=set)
    _is_revoked: bool = False
    _allowance: float = attrs.field(init=False)
    _counted_at: float | None = None

    def __attrs_post_init__(self) -> None:
        self._allowance = self.token.max_requests

    def count_request(self) -> None:
        """Count a request.

        Raises:
            RequestError: there were too many in the last minute.
        """
        now = anyio.current_time()
        limit, before = self.token.max_requests, self._counted_at
        if before is not None:
            regained = (now - before) * limit / 60
            self._allowance = min(limit, self._allowance + regained)
        self._counted_at = now
        if self._allowance < 1:
            wait = {"Retry-After": str(int(60 / limit) + 1)}
            raise RequestError(
                429, "too_many_requests", f"More than {limit} requests a minute", wait
            )
        self._allowance -= 1

    @property
    def streams(self) -> int:
        """How many it reads."""
        return len(self._streams)

    @contextmanager
    def streaming(self, scope: anyio.CancelScope) -> Iterator[None]:
        """Count a stream for a block; its scope is cancelled when the token ends.

        Raises:
            RequestError: the token has all the streams that it may have, or ended since the request was let in.
        """
        if self._is_revoked:
            raise refused()
        self.check_room("streams", self.streams, self.token.max_streams)
        self._streams.add(scope)
        try:
            yield
        finally:
            self._streams.discard(scope)

    def revoke(self) -> None:
        """End what the holder reads, and let them begin no other stream."""
        self._is_revoked = True
        for scope in self._streams:
            scope.cancel()

    def check_room(self, kind: str, used: int, limit: int) -> None:
        """Refuse what would be more than the token allows.

        Raises:
            RequestError: all that the token allows is used.
        """
        if used >= limit:
            raise RequestError(
                429, f"too_many_{kind}", f"The token allows {limit} {kind} at once"
            )


@attrs.frozen(eq=False)
class Clients:
    """Everybody who may call the server."""

    _known: tuple[tuple[bytes, Client], ...]
    _anonymous: Client | None = None
    _origins: frozenset[str] = frozenset()
    _hosts: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        tokens: Sequence[Token],
        *,
        allow_anonymous: bool,
        origins: Sequence[str] = (),
        hosts: Sequence[str] = (),
    ) -> Clients:
        """Take the tokens.

        Raises:
            ConfigError: there are none and nobody said that anybody may call, or two are alike.
        """
        problems = [
            Problem("tokens", f"two tokens have one {key}")
            for key in ("name", "secret")
            if len({getattr(token, key) for token in tokens}) < len(tokens)
        ]
        if not tokens and not allow_anonymous:
            problem = "expected a token, or `allow_anonymous=True`, which lets anybody call; got none"
            problems.append(Problem("tokens", problem))
        if problems:
            raise ConfigError(problems, subject="server")
        known = tuple((_digest(token.secret), Client(token)) for token in tokens)
        if not allow_anonymous:
            return cls(known)
        # nothing compares this secret: it is whoever sends no token
        anonymous = Client(Token(name="anonymous", secret="-" * _MIN_SECRET))
        return cls(known, anonymous, frozenset(origins), frozenset(hosts))

    def identify(self, headers: Headers) -> Client:
        """Return who sends a request.

        Raises:
            RequestError: it has no token, or none that is known; or a page sends it that may not.
        """
        given = headers.getlist("authorization")
        if not given and self._anonymous is not None:
            self._check_page(headers)
            return self._anonymous
        digest = _digest(bearer_of(headers))
        found = None
        # all are compared, each in constant time: how long it takes says nothing
        for known, client in self._known:
            if compare_digest(known, digest):
                found = client
        if found is None:
            raise refused()
        return found

    def _check_page(self, headers: Headers) -> None:
        """Refuse a page: without a token, whatever a person's browser shows could call a server on their machine.

        Raises:
            RequestError: its origin, or the name under which it finds the server, is none that was named.
        """
        origin = headers.get("origin")
        if origin is not None and not self._origins & {origin, "*"}:
            raise RequestError(
                403, "origin_refused", "Pages of this origin may not call"
            )
        # a page whose own name leads to this machine reads without naming an origin
        host = _host_name(headers.get("host", ""))
        if not (_is_own_name(host) or self._hosts & {host, "*"}):
            raise RequestError(
                403, "host_refused", "Without a token this host name may not be used"
            )


def bearer_of(headers: Headers) -> str:
    """Return the secret that a request sends; an empty one where it sends none, or several."""
    given = headers.getlist("authorization")
    scheme, _, secret = "".join(given[:1]).partition(" ")
    if scheme.lower() != _SCHEME or len(given) > 1:
        return ""
    return secret.strip()


def refused() -> RequestError:
    """Return the error of a request without a known token."""
    return RequestError(
        401,
        "unauthorized",
        "A known token is needed: `Authorization: Bearer …`",
        {"WWW-Authenticate": "Bearer"},
    )


def _host_name(host: str) -> str:
    """Return the name, or the address, of a `Host` header."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_own_name(host: str) -> bool:
    """Tell whether a name leads to one place whoever owns it: an address, or this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _digest(secret: str) -> bytes:
    # of equal length whatever was sent
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()
