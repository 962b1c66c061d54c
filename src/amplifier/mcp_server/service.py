"""What is served: tools and agents of one session, commands as prompts, stored sessions as resources."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Final

import anyio
import attrs
import mcp_types as types
from anyio import to_thread
from mcp import MCPError
from mcp.server.lowlevel import Server

from amplifier.app.commands.files import CommandFiles
from amplifier.app.commands.registry import CommandRegistry
from amplifier.app.sessions.opened import OpenSession, open_session
from amplifier.app.sessions.selection import SelectedSession
from amplifier.app.sessions.tool_calls import OneCall, require_tool
from amplifier.app.store.reader import read_history
from amplifier.app.store.store import ProjectSessions
from amplifier.app.text.message_visibility import visible_texts
from amplifier.kernel.reports import report
from amplifier.mcp_server.approval import (
    ClientApproval,
    ClientRequest,
    can_elicit,
    current_request,
)
from amplifier.mcp_server.one_agent import OneAgent
from amplifier_kit.commands import CommandError, CommandPrompt
from amplifier_kit.open_data import as_object
from amplifier_kit.redaction import SinkRedactor, StrictRedactor, redactor_of
from amplifier_kit.terminal import one_line
from amplifier_sdk.assessments import EDITS
from amplifier_sdk.effects import ONLY_READS, effects_of
from amplifier_sdk.errors import AmplifierError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.loops import schema_of
from amplifier_sdk.messages import MessageDict

__all__ = ["McpService", "serving_session"]

_AGENT: Final = "agent_"
_SESSION: Final = "amplifier://session/"
_MAX_SESSIONS: Final = 100
_MAX_LENGTH: Final = 8_000_000
"""Characters of an instruction; no model reads as many."""
_AGENT_SCHEMA: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "instruction": {"type": "string", "description": "What the agent is to do."}
    },
    "required": ["instruction"],
}


@asynccontextmanager
async def serving_session(
    selected: SelectedSession,
    tools: Sequence[str],
    *,
    accepted: frozenset[str] = frozenset(),
) -> AsyncIterator[McpService]:
    """Open the session whose tools and agents are served.

    Args:
        selected: what it is made of.
        tools: the names of the tools that are served.
        accepted: the kinds of calls that are accepted without a question.

    Raises:
        ConfigError: there is no such tool.
    """
    opening = open_session(
        selected.composition,
        record=attrs.evolve(selected.record, command="mcp serve"),
        store=selected.store,
        needs_provider=False,
        approval=ClientApproval(),
        accepted=accepted,
    )
    async with opening as opened:
        coordinator = opened.session.coordinator
        for name in tools:
            require_tool(name, coordinator.tools)
        files = CommandFiles(
            opened.composition.dirs,
            opened.composition.project,
            coordinator,
            opened.composition.collections,
        )
        registry = CommandRegistry()
        registry.add(await to_thread.run_sync(files.commands))
        # Those of modules may act, such as take permissions back: that is for people.
        yield McpService(opened, tuple(tools), registry, accepted)


@attrs.define(eq=False)
class McpService:
    """Answers the requests of clients.

    Args:
        opened: the session.
        tools: the names of the tools that are served.
        registry: the commands that are served as prompts.
        accepted: the kinds of calls that are accepted without a question.
    """

    opened: OpenSession
    tools: tuple[str, ...]
    registry: CommandRegistry
    accepted: frozenset[str] = frozenset()
    _calling: anyio.Lock = attrs.field(factory=anyio.Lock, init=False)

    def server(self) -> Server[object]:
        """Return the protocol's server."""
        return Server[object](
            "amplifier",
            version=version("amplifier"),
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    @property
    def _redactor(self) -> SinkRedactor:
        return redactor_of(self.opened.session.coordinator)

    # -- tools

    async def _list_tools(
        self,
        request: ClientRequest,
        _: types.PaginatedRequestParams | None,
    ) -> types.ListToolsResult:
        mounted = self.opened.session.coordinator.tools
        found = [
            types.Tool(
                name=name,
                description=mounted[name].description,
                input_schema=dict(schema_of(mounted[name])),
            )
            for name in self._offered(request)
        ]
        found += [
            types.Tool(
                name=f"{_AGENT}{name}",
                description=f"Have the agent {name} work. {agent.get('description') or ''}",
                input_schema=dict(_AGENT_SCHEMA),
            )
            for name, agent in self._agents().items()
        ]
        return types.ListToolsResult(tools=found)

    def _offered(self, request: ClientRequest) -> list[str]:
        """Return the tools that this client can use: those that may need a question only where it can ask."""
        mounted = self.opened.session.coordinator.tools
        if can_elicit(request):
            return [name for name in self.tools if name in mounted]
        unasked = set(ONLY_READS)
        if EDITS in self.accepted:
            unasked.add("write")
        return [
            name
            for name in self.tools
            if name in mounted
            # A tool that does not say what it does may do anything.
            and (effects_of(mounted[name], name=name) or {"exec"}) <= unasked
        ]

    def _agents(self) -> dict[str, JSONObject]:
        agents = as_object(self.opened.composition.plan.get("agents"))
        found = {name: as_object(agent) for name, agent in agents.items()}
        # As where a model delegates: an agent made of what the session is made of.
        return {"self": {"description": "It is made as the session is."}, **found}

    async def _call_tool(
        self, request: ClientRequest, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        name, arguments = params.name, dict(params.arguments or {})
        known = [
            *self._offered(request),
            *(f"{_AGENT}{each}" for each in self._agents()),
        ]
        if name not in known:
            raise MCPError(types.INVALID_PARAMS, f"there is no tool {name[:100]!r}")
        token = current_request.set(request)
        try:
            if name in self.tools:
                return await self._call(name, arguments)
            return await self._delegate(name.removeprefix(_AGENT), arguments)
        except AmplifierError as error:
            return self._result(str(error), is_error=True)
        except Exception as error:  # tools and providers fail as they like
            report("mcp_server.call_failed", error, tool=name)
            return self._result("It failed; the log says why", is_error=True)
        finally:
            current_request.reset(token)

    async def _call(self, name: str, arguments: JSONObject) -> types.CallToolResult:
        """Make a call by the one path of every tool call, with all that guards it."""
        call = OneCall(name, arguments)
        await self._take_turn(f"amplifier mcp serve: {name}", call)
        result = call.result
        assert result is not None  # a turn that ended made its call
        return self._result(result.get_serialized_output(), is_error=not result.success)

    async def _take_turn(self, prompt: str, loop: OneCall | OneAgent) -> None:
        # A session takes one turn at a time.
        async with self._calling:
            coordinator = self.opened.session.coordinator
            await coordinator.unmount("orchestrator")
            await coordinator.mount("orchestrator", loop)
            # Nobody typed it: what it mentions is not followed.
            async with self.opened.stream(prompt, typed="") as events:
                async for _ in events:
                    pass

    async def _delegate(self, name: str, arguments: JSONObject) -> types.CallToolResult:
        instruction = arguments.get("instruction")
        if not isinstance(instruction, str) or not instruction.strip():
            return self._result("instruction: expected a text", is_error=True)
        if len(instruction) > _MAX_LENGTH:
            problem = "the instruction has more than 8 MB; say less"
            return self._result(problem, is_error=True)
        agent = OneAgent(name, self.opened.session.spawn)
        await self._take_turn(instruction, agent)
        child = agent.result
        assert child is not None  # a turn that ended has its answer
        return self._result(child.output, is_error=child.status != "completed")

    def _result(self, text: str, *, is_error: bool) -> types.CallToolResult:
        shown = types.TextContent(text=self._redactor.redact_text(text))
        return types.CallToolResult(content=[shown], is_error=is_error)

    # -- stored sessions

    async def _list_resources(
        self,
        _: ClientRequest,
        __: types.PaginatedRequestParams | None,
    ) -> types.ListResourcesResult:
        store = ProjectSessions.of(self.opened.composition.dirs)
        every = await to_thread.run_sync(store.all)
        redactor = self._redactor
        found = [
            types.Resource(
                name=one_line(
                    record.name or redactor.redact_text(record.prompt) or "Session", 100
                ),
                uri=f"{_SESSION}{record.session_id}",
                mime_type="text/markdown",
            )
            for record in (session.record for session in every)
            if record.command is None
        ]
        return types.ListResourcesResult(resources=found[:_MAX_SESSIONS])

    async def _read_resource(
        self, _: ClientRequest, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        store = ProjectSessions.of(self.opened.composition.dirs)
        session = None
        if uri.startswith(_SESSION) and "/" not in uri.removeprefix(_SESSION):
            session = store.session(uri.removeprefix(_SESSION))
        if session is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no resource {uri[:100]!r}")
        history = await to_thread.run_sync(read_history, session.folder)
        text = await to_thread.run_sync(_markdown, history.messages)
        shown = types.TextResourceContents(
            uri=uri,
            mime_type="text/markdown",
            text=self._redactor.redact_text(text),
        )
        return types.ReadResourceResult(contents=[shown])

    # -- commands

    async def _list_prompts(
        self,
        _: ClientRequest,
        __: types.PaginatedRequestParams | None,
    ) -> types.ListPromptsResult:
        found = [
            types.Prompt(
                name=name,
                description=command.description,
                arguments=[
                    types.PromptArgument(
                        name="arguments", description=command.argument_hint
                    )
                ],
            )
            for name, command in self.registry.listed.items()
        ]
        return types.ListPromptsResult(prompts=found)

    async def _get_prompt(
        self, request: ClientRequest, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        given = (params.arguments or {}).get("arguments", "")
        token = current_request.set(request)
        try:
            made = await self.registry.find(params.name).make(given)
        except CommandError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error
        finally:
            current_request.reset(token)
        text = self._redactor.redact_text(made.text)
        if not isinstance(made, CommandPrompt):
            raise MCPError(types.INVALID_PARAMS, f"it makes no prompt: {text}")
        content = types.TextContent(text=text)
        message = types.PromptMessage(role="user", content=content)
        return types.GetPromptResult(messages=[message])


def _markdown(messages: Sequence[MessageDict]) -> str:
    text = "\n\n".join(visible_texts(messages, "user"))
    return SinkRedactor(StrictRedactor()).redact_text(text)
