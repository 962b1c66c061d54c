"""Questions to the person at the other agent, asked by elicitation."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, TypeAlias

from amplifier_sdk.errors import ApprovalUnavailableError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.legible import escaped
from amplifier_sdk.person_questions import PersonQuestion

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
        schema: JSONObject = {"type": "string", "enum": list(options)}
        chosen = await _elicit(escaped(prompt), schema)
        if isinstance(chosen, str) and chosen in options:
            return chosen
        return _REFUSAL

    async def ask_person(self, question: PersonQuestion, /) -> JSONValue:
        """Return what the person at the other side answers; `None` where they decline.

        Raises:
            ApprovalUnavailableError: the other side cannot ask.
        """
        return await _elicit(escaped(question.prompt), dict(question.schema))


async def _elicit(prompt: str, schema: JSONObject) -> JSONValue:
    """Ask for a value; a client takes none but those of an object.

    Raises:
        ApprovalUnavailableError: the other side cannot ask.
    """
    from mcp import MCPError  # imported where it is served

    request = current_request.get()
    if request is None or not can_elicit(request):
        raise ApprovalUnavailableError(f"the MCP client cannot ask; {_REMEDY}")
    is_form = schema.get("type") == "object"
    form: dict[str, object] = {**schema}
    if not is_form:
        form = {
            "type": "object",
            "properties": {"answer": schema},
            "required": ["answer"],
        }
    try:
        answer = await request.session.elicit_form(prompt, form, request.request_id)
    except MCPError as error:
        raise ApprovalUnavailableError(
            f"the MCP client did not ask: {error}"
        ) from error
    if answer.action != "accept" or answer.content is None:
        return None
    content: JSONObject = {**answer.content}
    return content if is_form else content.get("answer")
