"""The module's configuration: which model, how its server runs, how answers are written."""

from __future__ import annotations

import re
from typing import Final, Literal

import attrs

from amplifier_sdk.bounds import count, number, seconds

__all__ = ["LocalConfig"]

_SMALLEST_WINDOW: Final = 512
"""Tokens that one request needs at least: a question, a few examples, an answer."""


def _sha256(_: object, attribute: attrs.Attribute[str | None], value: object) -> None:
    if value is not None and not (
        isinstance(value, str) and re.fullmatch("[0-9a-fA-F]{64}", value)
    ):
        raise ValueError(f"{attribute.name} is 64 hexadecimal digits; got {value!r}")


@attrs.frozen(kw_only=True)
class LocalConfig:
    """What `config` of the plan may hold.

    Args:
        model_path: a GGUF file to use in place of the embedded model; `~` is the home directory.
        sha256: the checksum that the file at `model_path` must have; default unchecked.
        cache_dir: where the embedded model's weights are stored; default `$AMPLIFIER_CACHE/models`, else
            `$AMPLIFIER_HOME/cache/models`, else `amplifier/models` in the user's cache directory.
        n_ctx: tokens of context that all requests share.
        n_parallel: requests that are answered at once; each has `n_ctx / n_parallel` tokens of context.
        threads: threads that compute; default one less than there are processors, 1 to 4.
        temperature: of requests that name none; 0 always takes the likeliest token.
        max_output_tokens: of requests that name none.
        tool_gate: who decides between text and a tool when the request leaves it open: `lexical` compares
            the request's words with the tools', `off` always writes text.
        degrade: let a text stand for images and the like that a prompt shows, which the model does not take, instead of
            refusing them.
        start_timeout: seconds in which the model must be loaded.
    """

    model_path: str | None = None
    sha256: str | None = attrs.field(default=None, validator=_sha256)
    cache_dir: str | None = None
    n_ctx: int = attrs.field(default=8192, validator=count)
    n_parallel: int = attrs.field(default=2, validator=count)
    threads: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(count)
    )
    temperature: float = attrs.field(default=0.0, validator=number(0, 2))
    max_output_tokens: int = attrs.field(default=512, validator=count)
    tool_gate: Literal["lexical", "off"] = "lexical"
    degrade: bool = False
    start_timeout: float = attrs.field(default=30.0, validator=seconds)

    def __attrs_post_init__(self) -> None:
        if self.sha256 is not None and self.model_path is None:
            raise ValueError(
                "sha256 is the checksum of model_path, which is not set; the embedded model has its own"
            )
        if self.window < _SMALLEST_WINDOW:
            raise ValueError(
                f"n_ctx / n_parallel is the context of one request, at least {_SMALLEST_WINDOW} tokens; "
                f"got {self.n_ctx} / {self.n_parallel}"
            )
        if self.max_output_tokens >= self.window:
            raise ValueError(
                f"max_output_tokens is below the {self.window} tokens of context that a request has; "
                f"got {self.max_output_tokens}"
            )

    @property
    def window(self) -> int:
        """Tokens of context that one request has, its answer included."""
        return self.n_ctx // self.n_parallel
