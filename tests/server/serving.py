"""A server of stored sessions in the test's own event loop, with callers of several tenants."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import attrs

from amplifier.app.directories import AppDirs
from amplifier.app.plans.base_plans import PlanOptions
from amplifier.server.application import StoredServer
from amplifier.server.roles import Role
from amplifier.server.stores import ServerStores
from amplifier.server.token_store import TokenStore
from amplifier_sdk.jsontypes import JSONValue
from tests.serving.client import Caller, Event

__all__ = ["REAP_INTERVAL", "WRITES", "Site", "ended", "write_call"]

REAP_INTERVAL = 0.2
"""How long turns of processes that died wait, so that tests do not."""


def write_call(text: str = "hello") -> JSONValue:
    """An answer that calls a tool which asks a person."""
    arguments: JSONValue = {"file_path": "notes.txt", "content": text}
    return {"tool_calls": [{"name": "write_file", "arguments": arguments}]}


WRITES: Sequence[JSONValue] = (write_call(), "Written.")


@attrs.frozen(eq=False)
class Site:
    """A folder in which servers run, and what their sessions are made of.

    Args:
        folder: the project.
        home: the person's own.
        store: the store's name.
    """

    folder: Path
    home: Path
    store: str = "files"

    @property
    def dirs(self) -> AppDirs:
        return AppDirs(working_dir=self.folder, home=self.home, root=self.folder)

    def plan(self, *responses: JSONValue) -> PlanOptions:
        """Write a plan whose model answers like this."""
        script = self.folder / "script.json"
        script.write_text(json.dumps(responses))
        config: JSONValue = {
            "responses": str(script),
            "repeat": True,
            "by_history": True,
        }
        plan = {
            "session": {"orchestrator": "loop-streaming", "context": "context-simple"},
            "providers": [{"module": "provider-scripted", "config": config}],
            "tools": [{"module": "tool-filesystem"}],
            "hooks": [
                {"module": f"hooks-{name}"}
                for name in ("redaction", "approval", "logging")
            ],
        }
        file = self.home / "plan.json"
        file.write_text(json.dumps(plan))
        return PlanOptions(file=file)

    async def token(
        self, name: str = "olga", role: Role = "owner", tenant: str = "default"
    ) -> str:
        stores = ServerStores(self.store, self.dirs)
        try:
            return await TokenStore(await stores.server()).add(name, tenant, role)
        finally:
            await stores.aclose()

    @asynccontextmanager
    async def serving(self, *responses: JSONValue) -> AsyncIterator[StoredServer]:
        """Run a server; several may run at once."""
        options = self.plan(*(responses or ("Fine.",)))
        stores = ServerStores(self.store, self.dirs)
        server = StoredServer(stores, options, reap_interval=REAP_INTERVAL)
        async with server.lifespan():
            yield server


async def ended(caller: Caller, session: str, turn: str) -> dict[str, object]:
    """Wait until a turn has ended and is free for the next."""
    server = caller.app
    assert isinstance(server, StoredServer)
    store, seen = (await server.stores.tenant("default")).store, ""
    with anyio.fail_after(20):
        while True:
            answer = await caller.get(f"/sessions/{session}/turns/{turn}")
            if answer.json["state"] != "running":
                assert isinstance(answer.json, dict)
                return answer.json
            seen = await store.wait_for_change(session, seen, max_wait=20)


def is_last(event: Event) -> bool:
    return event.type in ("turn_result", "turn_failed", "turn_cancelled")
