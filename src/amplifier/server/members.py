"""Who calls a server at the moment: each token's holder with their tenant, their role and what they use."""

from __future__ import annotations

from hmac import compare_digest
from time import time
from typing import Final

import attrs
from starlette.datastructures import Headers

from amplifier.server.retries import Retries
from amplifier.server.roles import Role, may
from amplifier.server.token_store import StoredToken, TokenStore, hash_of
from amplifier.serving.errors import RequestError
from amplifier.serving.tokens import Client, Token, bearer_of, refused
from amplifier_sdk.errors import AmplifierError

__all__ = ["Members", "TokenHolder"]

_POLL: Final = 60.0
_RETRY: Final = 1.0
_LONGEST: Final = 5.0


@attrs.define(eq=False)
class TokenHolder(Client):
    """The holder of a token.

    Args:
        tenant: whose sessions they find.
        role: what they may do.
        expires: when nobody may call with it any more, in seconds since the epoch; `None` for never.
    """

    tenant: str = attrs.field(kw_only=True)
    role: Role = attrs.field(kw_only=True)
    expires: float | None = attrs.field(default=None, kw_only=True)

    @property
    def is_expired(self) -> bool:
        """Whether the token has ended."""
        return self.expires is not None and self.expires <= time()

    def has_rights_of(self, other: TokenHolder) -> bool:
        """Tell whether they may do just what another one may."""
        rights = (self.tenant, self.role, self.expires)
        return rights == (other.tenant, other.role, other.expires)

    def require(self, role: Role) -> None:
        """Refuse what the role may not.

        Raises:
            RequestError: another role is needed.
        """
        if not may(self.role, role):
            raise RequestError(403, "forbidden", f"This needs the role {role!r}")


@attrs.define(eq=False)
class Members:
    """Everybody who may call; a token that is added or removed counts at once.

    Args:
        tokens: where they are stored.
    """

    tokens: TokenStore
    _known: dict[str, TokenHolder] = attrs.field(factory=dict)

    def identify(self, headers: Headers) -> TokenHolder:
        """Return who sends a request.

        Raises:
            RequestError: it has no token, or none that is known.
        """
        given = hash_of(bearer_of(headers)).encode()
        found = None
        # all are compared, each in constant time: how long it takes says nothing
        for known, member in self._known.items():
            if compare_digest(known.encode(), given):
                found = member
        if found is None or found.is_expired:
            raise refused()
        return found

    def tenants(self) -> set[str]:
        """Return the tenants of all tokens."""
        return {member.tenant for member in self._known.values()}

    async def load(self) -> None:
        """Read the tokens; who is still there as they were keeps what they use, and what others read ends."""
        known: dict[str, TokenHolder] = {}
        for token in await self.tokens.load():
            made, before = _member(token), self._known.get(token.hash)
            is_same = before is not None and before.has_rights_of(made)
            known[token.hash] = before if before is not None and is_same else made
        former, self._known = self._known, known
        for key, member in former.items():
            if known.get(key) is not member or member.is_expired:
                member.revoke()

    async def follow(self) -> None:
        """Read the tokens whenever they change or one of them ends, until cancelled."""
        seen, retries = "", Retries("server.tokens_not_read", _RETRY, _LONGEST)
        while True:
            try:
                seen = await self.tokens.wait_for_change(
                    seen, max_wait=self._until_one_ends()
                )
                await self.load()
                retries.succeed()
            except (AmplifierError, OSError) as error:
                await retries.wait(error)

    def _until_one_ends(self) -> float:
        now = time()
        left = [
            member.expires - now
            for member in self._known.values()
            if member.expires is not None and not member.is_expired
        ]
        return min([_POLL, *left])


def _member(token: StoredToken) -> TokenHolder:
    # who may call is decided by the hash above; nothing compares this secret
    limits = Token(name=token.name, secret=token.hash)
    return TokenHolder(
        limits, tenant=token.tenant, role=token.role, expires=token.expires
    )
