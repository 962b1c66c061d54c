"""What happened in sessions and on the server: children, traces, logs, cost, questions, the audit log."""

from __future__ import annotations

import errno
import json
import os
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Final

import attrs
from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from amplifier.app.directories import AppDirs
from amplifier.app.logs.library import LogLibrary, SessionLogFiles
from amplifier.app.questions.stored_approvals import described_question
from amplifier.app.store.records import beginning_of
from amplifier.app.traces.page import page_data, read_trace
from amplifier.server.activity import ActivityLog
from amplifier.server.members import TokenHolder
from amplifier.server.quota_views import describe_quotas, quota_metrics
from amplifier.server.records import is_open_approval
from amplifier.server.roles import Role, may
from amplifier.server.sessions import StoredSessions
from amplifier.server.stored_logs import log_file, log_places, without_links
from amplifier.server.stores import DEFAULT_TENANT
from amplifier.serving.errors import RequestError
from amplifier.serving.json_answers import JSONAnswer
from amplifier.serving.metrics import METRICS_TYPE
from amplifier.serving.operations import Endpoint, Operation
from amplifier.serving.tokens import Client
from amplifier_kit.open_data import as_object
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import ConfigError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.stores import LogName, SessionStore

__all__ = ["Insights"]

_OBJECT: Final[JSONObject] = {"type": "object"}
_MAX_RECORDS: Final = 500
_MAX_BYTES: Final = 2_000_000
_MAX_ENTRIES: Final = 1000
_SAID: Final[tuple[LogName, ...]] = ("transcript", "journal")


@attrs.frozen(eq=False)
class Insights:
    """The endpoints that change nothing.

    Args:
        sessions: the endpoints of sessions.
        activity: the logs of all processes.
    """

    sessions: StoredSessions
    activity: ActivityLog

    def operations(self) -> Iterator[tuple[Role, Operation]]:
        """Describe them all, each with the role that it needs."""
        one = "/sessions/{session_id}"
        reading: tuple[tuple[Role, str, Endpoint], ...] = (
            ("reader", "/me", self.show_caller),
            ("reader", "/questions", self.list_questions),
            ("reader", f"{one}/children", self.list_children),
            ("reader", f"{one}/trace", self.show_trace),
            ("reader", f"{one}/logs", self.show_logs),
            ("reader", "/cost", self.show_cost),
            ("reader", "/limits", self.show_limits),
            ("owner", "/audit", self.show_audit),
        )
        for role, path, endpoint in reading:
            yield role, Operation("GET", path, endpoint, {200: _OBJECT})
        text: JSONObject = {"type": "string"}
        metrics = Operation(
            "GET",
            "/metrics",
            self.show_metrics,
            {200: text},
            media_type="text/plain",
        )
        yield "owner", metrics

    async def show_caller(self, _request: Request, client: Client) -> Response:
        """Show whose token it is."""
        assert isinstance(client, TokenHolder)
        return JSONAnswer(
            {"name": client.token.name, "tenant": client.tenant, "role": client.role}
        )

    async def list_questions(self, _request: Request, client: Client) -> Response:
        """List the open questions of all sessions of the tenant."""
        tenant = await self.sessions.tenant(client)
        listed: list[JSONValue] = [
            {"session_id": question.session_id, **described_question(question)}
            for question in await tenant.store.questions()
            if is_open_approval(question)
        ]
        return JSONAnswer({"questions": listed})

    async def list_children(self, request: Request, client: Client) -> Response:
        """List the sessions that a session's agents made, with what they were asked and what it cost."""
        tenant, record = await self.sessions.session(request, client)
        store = tenant.store
        listed: list[JSONValue] = []
        for child in await store.children(str(record["session_id"])):
            found = await store.read_record(child) or {}
            keys = ("agent_name", "turn_count", "cost_usd", "created")
            facts: JSONObject = {key: found.get(key) for key in keys}
            asked = await _asked(store, child)
            listed.append({"session_id": child, "prompt": asked, **facts})
        return JSONAnswer({"children": listed})

    async def show_trace(self, request: Request, client: Client) -> Response:
        """Show the steps of a session and of those it made, as the trace page has them."""
        tenant, record = await self.sessions.session(request, client)
        session_id = str(record["session_id"])
        async with log_places(tenant, session_id) as dirs:
            return JSONAnswer(await to_thread.run_sync(_trace, dirs, session_id))

    async def show_logs(self, request: Request, client: Client) -> Response:
        """Show the last records of a session's log."""
        tenant, record = await self.sessions.session(request, client)
        session_id = str(record["session_id"])
        async with log_places(tenant, session_id) as dirs:
            path = log_file(dirs, session_id)
            return JSONAnswer({"records": await to_thread.run_sync(_records, path)})

    async def show_cost(self, _request: Request, client: Client) -> Response:
        """Show what turns cost by day in UTC and tenant: the caller's, or all for who owns the server."""
        assert isinstance(client, TokenHolder)
        days: dict[tuple[str, str], _Day] = {}
        wanted = None if _owns_server(client) else client.tenant
        for tenant, entries in (await self.activity.read_costs(wanted)).items():
            for entry in entries:
                assert isinstance(entry.data, dict)
                day = datetime.fromtimestamp(entry.at, UTC).date().isoformat()
                days.setdefault((day, tenant), _Day()).add(entry.data)
        listed: list[JSONValue] = [
            {"day": day, "tenant": tenant, **as_object(to_json(amounts))}
            for (day, tenant), amounts in sorted(days.items())
        ]
        return JSONAnswer({"tenant": client.tenant, "days": listed})

    async def show_limits(self, _request: Request, client: Client) -> Response:
        """Show what the tenant may use with others, and how much of it is used; of all for who owns the server."""
        assert isinstance(client, TokenHolder)
        quotas = self.sessions.quotas
        if quotas is None:
            return JSONAnswer({"tenant": client.tenant, "accounts": [], "paused": []})
        wanted = None if _owns_server(client) else client.tenant
        return JSONAnswer(await describe_quotas(quotas, client.tenant, only=wanted))

    async def show_audit(self, _request: Request, client: Client) -> Response:
        """Show who changed what in the tenant, the latest last."""
        assert isinstance(client, TokenHolder)
        entries = await self.activity.read("audit", client.tenant)
        listed: list[JSONValue] = [
            {"at": entry.at, **entry.data}
            for entry in entries[-_MAX_ENTRIES:]
            if isinstance(entry.data, dict)
        ]
        return JSONAnswer({"entries": listed})

    async def show_metrics(self, _request: Request, client: Client) -> Response:
        """Show the metrics of this process as Prometheus reads them; they are of all tenants."""
        assert isinstance(client, TokenHolder)
        if client.tenant != DEFAULT_TENANT:
            message = f"Metrics are of all tenants; only {DEFAULT_TENANT!r} reads them"
            raise RequestError(403, "forbidden", message)
        text = self.sessions.metrics.to_text()
        if self.sessions.quotas is not None:
            text += await quota_metrics(self.sessions.quotas)
        return Response(text, media_type=METRICS_TYPE)


def _owns_server(client: TokenHolder) -> bool:
    return client.tenant == DEFAULT_TENANT and may(client.role, "owner")


@attrs.define
class _Day:
    """What the turns of a day came to."""

    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)

    def add(self, entry: JSONObject) -> None:
        self.turns += 1
        self.input_tokens += _number(entry.get("input_tokens"))
        self.output_tokens += _number(entry.get("output_tokens"))
        cost = entry.get("cost_usd")
        if isinstance(cost, str):
            self.cost_usd += Decimal(cost)


async def _asked(store: SessionStore, session_id: str) -> str:
    """Return how the first prompt of a child begins, whose record says none; empty before there is one."""
    for log in _SAID:
        for entry in (await store.read_log(session_id, log)).entries:
            data = entry.data if isinstance(entry.data, dict) else {}
            message = as_object(data.get("message"))
            if message.get("role") == "user":
                return beginning_of(str(message.get("content")))
            if "prompt" in data:
                return beginning_of(str(data["prompt"]))
    return ""


def _number(value: JSONValue) -> int:
    return value if isinstance(value, int) else 0


def _trace(dirs: AppDirs, session_id: str) -> JSONObject:
    try:
        log = SessionLogFiles.of_file(log_file(dirs, session_id))
    except ConfigError:  # it has none so far
        return {"rows": [], "said": []}
    return page_data(read_trace(LogLibrary(dirs).family(log)))


def _records(path: Path) -> list[JSONValue]:
    try:
        with open(path, "rb", opener=without_links) as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _MAX_BYTES))
            lines = deque(stream, _MAX_RECORDS)
    except OSError as error:
        # a link may lead to what is another tenant's
        if isinstance(error, FileNotFoundError) or error.errno == errno.ELOOP:
            return []
        raise
    records: list[JSONValue] = []
    for line in lines:
        try:
            records.append(json.loads(line))
        except ValueError:  # one that is being written, or begins before
            continue
    return records
