"""Questions to the person at the other agent, asked by elicitation."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeAlias

from amplifier_sdk.errors import ApprovalUnavailableError
from amplifier_sdk.legible import escaped

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

__all__ = ["ClientApproval", "ClientRequest", "can_elicit", "current_request"]

ClientRequest: TypeAlias = "ServerRequestContext[object, object]"
"""A request, and the client that sent it."""

current_request: Final[ContextVar[ClientRequest | None]] = ContextVar(
    "mcp_request", default=None
)
"""The request for which this task works."""

_REFUSAL: Final = "Deny"
_REMEDY: Final = "'amplifier mcp serve --accept-edits' allows edits without asking"


def can_elicit(request: ClientRequest) -> bool:
    """Tell whether the person at the other side can be asked now."""
    capabilities = request.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return False
    return request.session.can_send_request


class ClientApproval:
    """The approval system of a session that another agent uses."""

    async def request_approval(
        self,
        prompt: str,
        options: Sequence[str],
        timeout: float,  # noqa: ARG002  # the kernel keeps the time
        default: str,  # noqa: ARG002  # likewise, when nobody answers
        /,
    ) -> str:
        """Ask, and return the option that the person chose.

        Raises:
            ApprovalUnavailableError: the other side cannot ask.
        """
        from mcp import MCPError  # imported where it is served

        request = current_request.get()
        if request is None or not can_elicit(request):
            raise ApprovalUnavailableError(f"the MCP client cannot ask; {_REMEDY}")
        schema: dict[str, object] = {
            "type": "object",
            "properties": {"answer": {"type": "string", "enum": list(options)}},
            "required": ["answer"],
        }
        try:
            answer = await request.session.elicit_form(
                escaped(prompt), schema, request.request_id
            )
        except MCPError as error:
            raise ApprovalUnavailableError(
                f"the MCP client did not ask: {error}"
            ) from error
        if answer.action != "accept" or answer.content is None:
            return _REFUSAL
        chosen = answer.content.get("answer")
        if isinstance(chosen, str) and chosen in options:
            return chosen
        return _REFUSAL
