"""The tokens of a server in its store, which has their hashes alone."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from time import time
from typing import Final

import attrs

from amplifier.app.store.records import SessionRecord
from amplifier.server.roles import ROLES, Role
from amplifier.server.stores import check_tenant
from amplifier_sdk.configuration import read_config
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.stores import LogEntry, SessionStore

__all__ = ["TOKENS", "StoredToken", "TokenStore", "hash_of"]

TOKENS: Final = "server-tokens"
"""The session of the server's store in which they stand; its events say who got and lost them."""

_DOCUMENT: Final = "tokens.json"
_PERIOD: Final = 10.0
_PREFIX: Final = "amp_"


def hash_of(secret: str) -> str:
    """Return what is stored of a secret; it is random and long, so that nobody finds it by trying."""
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


@attrs.frozen(kw_only=True)
class StoredToken:
    """A token without its secret.

    Args:
        name: who has it.
        tenant: whose sessions they find.
        role: what they may do.
        hash: of the secret.
        created: when it was made, in seconds since the epoch.
        expires: when nobody may call with it any more; `None` for never.
    """

    name: str
    tenant: str
    role: Role
    hash: str = attrs.field(repr=False)
    created: float = attrs.field(factory=time)
    expires: float | None = None


def _noted(action: str, token: StoredToken) -> LogEntry:
    """Say in the audit log of the token's tenant what became of it."""
    entry: JSONObject = {
        "tenant": token.tenant,
        "token": "(command line)",
        "action": action,
        "path": f"{token.name} ({token.role})",
    }
    return LogEntry(kind="audit", data=entry, at=time())


@attrs.frozen
class _Tokens:
    tokens: tuple[StoredToken, ...] = ()


@attrs.frozen(eq=False)
class TokenStore:
    """The tokens of a server.

    Args:
        store: the server's own.
    """

    store: SessionStore

    async def load(self) -> tuple[StoredToken, ...]:
        """Return all tokens.

        Raises:
            ConfigError: they cannot be understood; nobody is let in then.
        """
        documents = await self.store.read_documents(TOKENS)
        written = documents.get(_DOCUMENT, b'{"tokens": []}')
        try:
            data = json.loads(written)
        except ValueError as error:
            raise ConfigError.of("", str(error), subject="tokens") from error
        return read_config(_Tokens, data, subject="tokens").tokens

    async def wait_for_change(self, seen: str, *, max_wait: float) -> str:
        """Wait until there are others."""
        return await self.store.wait_for_change(TOKENS, seen, max_wait=max_wait)

    async def add(
        self, name: str, tenant: str, role: Role, *, lasts: float | None = None
    ) -> str:
        """Make a token and return its secret, which is shown this once.

        Args:
            name: who has it.
            tenant: whose sessions they find.
            role: what they may do.
            lasts: seconds after which it has ended; `None` for never.

        Raises:
            ConfigError: the name is taken, or something is none of what it should be.
        """
        check_tenant(tenant)
        if role not in ROLES or not name or not name.isprintable():
            problem = f"expected a name and a role of {', '.join(ROLES)}"
            raise ConfigError.of(name, problem, subject="token")
        secret = _PREFIX + secrets.token_urlsafe(32)
        now = time()
        made = StoredToken(
            name=name,
            tenant=tenant,
            role=role,
            hash=hash_of(secret),
            created=now,
            expires=None if lasts is None else now + lasts,
        )
        async with self._changing("add_token", name) as known:
            if name in known:
                problem = "there is one of this name; remove it first"
                raise ConfigError.of(name, problem, subject="token")
            known[name] = made
        return secret

    async def remove(self, name: str) -> None:
        """Let nobody in any more with a token.

        Raises:
            ConfigError: there is none of this name.
        """
        async with self._changing("remove_token", name) as known:
            if known.pop(name, None) is None:
                raise ConfigError.of(name, "there is none", subject="token")

    @asynccontextmanager
    async def _changing(
        self, action: str, name: str
    ) -> AsyncIterator[dict[str, StoredToken]]:
        lease = await self.store.acquire(TOKENS, owner="token", period=_PERIOD)
        try:
            known = {token.name: token for token in await self.load()}
            before = known.get(name)
            yield known
            record = SessionRecord(session_id=TOKENS, name="tokens", updated=time())
            if await self.store.read_record(TOKENS) is None:
                await self.store.write_record(lease, record.to_dict())
            changed = before or known[name]
            # first: what cannot be noted is not done
            await self.store.append(lease, "events", [_noted(action, changed)])
            data = to_json(_Tokens(tuple(known.values())))
            await self.store.write_document(lease, _DOCUMENT, json.dumps(data).encode())
            # after it: who waits for a change of files notices that of the record
            await self.store.write_record(lease, record.to_dict())
        finally:
            await self.store.release(lease)
