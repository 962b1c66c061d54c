"""What a person is asked to agree to: a project's servers, and definitions that are new or changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import attrs
from anyio import to_thread

from amplifier_kit.trust import TrustDecision
from amplifier_module_tool_mcp.projects import ProjectServers
from amplifier_module_tool_mcp.server import Server
from amplifier_sdk.errors import ToolError
from amplifier_sdk.results import HookResult

__all__ = ["Agreements"]

_MAX_SHOWN: Final = 8000
_DENY: Final = "Deny"
_AGREE: Final = "Agree"


@attrs.define(eq=False)
class Agreements:
    """Asks, and carries out what was agreed to: exactly what was shown, or nothing.

    What was shown belongs to the call that it was shown for: another may ask meanwhile, when it is something else.

    Args:
        project: what the project says of servers.
    """

    project: ProjectServers
    _decisions: dict[str, TrustDecision] = attrs.field(factory=dict)
    _digests: dict[str, Mapping[str, str]] = attrs.field(factory=dict)

    async def question(self, server: Server, call: str) -> HookResult:
        """Ask a person about what a server wants.

        Args:
            server: which it is.
            call: the id of the call that asks.
        """
        if _awaits_trust(server):
            return self._ask(
                server, await to_thread.run_sync(self._project_question, call)
            )
        if not server.offers.disagreed:
            return HookResult.deny(
                f"nothing of the MCP server {server.name!a} awaits an agreement"
            )
        self._digests[call] = server.offers.digests()
        return self._ask(server, server.offers.question())

    async def carry_out(self, server: Server, call: str) -> str:
        """Do what was agreed to, and say what it was.

        Args:
            server: which it is about.
            call: the id of the call that asked.

        Raises:
            ToolError: it is no longer what was shown, or cannot be stored.
        """
        try:
            if _awaits_trust(server):
                return await self._trust(call)
            if self._digests.pop(call, None) != server.offers.digests():
                raise ToolError(
                    "what the server offers is not what was shown; ask again"
                )
            await server.offers.agree()
        except (OSError, ValueError) as error:
            raise ToolError(f"the agreement cannot be stored: {error}") from error
        return "its tools are offered as they were shown, from the next request of the session's next turn on"

    async def _trust(self, call: str) -> str:
        decision = self._decisions.pop(call, None)
        if decision is None:
            raise ToolError("nobody was asked about the project's servers; ask again")
        await to_thread.run_sync(self.project.grant, decision)
        return "the project's servers are trusted as they were shown"

    def _project_question(self, call: str) -> str:
        servers, decision = self.project.look()
        if decision is None or not decision.can_be_trusted:
            return ""
        self._decisions[call] = decision
        shown = {
            key: config if isinstance(config, str) else attrs.asdict(config)
            for key, config in servers.items()
        }
        items = "\n".join(
            f"{path!a}: {digest[:16]}" for path, digest in decision.items.items()
        )
        return (
            f"The folder {decision.folder!a} declares MCP servers. Agreeing trusts all of them, and these files as they"
            f" are now.\nServers:\n{json.dumps(shown, indent=1, ensure_ascii=True)}\nFiles:\n{items}"
        )

    def _ask(self, server: Server, text: str) -> HookResult:
        if not text:
            reason = "its files are gone"
            if self.project.decision is not None:
                reason = self.project.decision.reason
            return HookResult.deny(f"the project's servers cannot be trusted: {reason}")
        if len(text) > _MAX_SHOWN:
            left_out = len(text) - _MAX_SHOWN
            text = f"{text[:_MAX_SHOWN]}\n[… {left_out} characters are not shown: deny unless you know them]"
        return HookResult(
            action="ask_user",
            approval_prompt=f"MCP server {server.name!a} asks for your agreement. Its own words follow.\n{text}",
            approval_options=(_AGREE, _DENY),
            approval_allowing=(_AGREE,),
            approval_default="deny",
            approval_risk="high",
        )


def _awaits_trust(server: Server) -> bool:
    return server.declared.source == "project" and server.state == "refused"
