"""The module's configuration: the options of all vendors, and what servers of this protocol differ in."""

from __future__ import annotations

from typing import Final, Literal

import attrs

from amplifier_kit.vendors import VendorConfig
from amplifier_sdk.bounds import integer

__all__ = ["ChatCompletionsConfig"]

_LONGEST_ANSWER: Final = 8192
_SMALLEST_WINDOW: Final = 512


@attrs.frozen(kw_only=True)
class ChatCompletionsConfig(VendorConfig):
    """What `config` of the plan may hold beside the options of every vendor.

    Args:
        key_variable: the environment variable of the key; default `OPENAI_API_KEY` for OpenAI's own address and for
            the one in `OPENAI_BASE_URL`, and none for any other.
        context_window: tokens that a model takes of which the server does not tell.
        max_tokens_field: the name of the longest answer in a request; default `max_completion_tokens` for OpenAI's
            own address, `max_tokens` for any other.
        stream_usage: ask the server to report the tokens used.
        parallel_tool_calls: whether an answer may call several tools; default the server's.
        send_reasoning: send a model's thinking back with its answers, for servers that want it.
    """

    key_variable: str | None = None
    context_window: int = attrs.field(
        default=128_000, validator=integer(_SMALLEST_WINDOW)
    )
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    stream_usage: bool = True
    parallel_tool_calls: bool | None = None
    send_reasoning: bool = False

    @property
    def longest_answer(self) -> int:
        """Tokens that a model writes of which the server does not tell."""
        # A quarter at most, so that a small window has room for the conversation.
        return min(self.max_tokens or _LONGEST_ANSWER, self.context_window // 4)
