"""Results, and what modules say of providers, models and themselves.

The two results subclass the SDK's, so that whatever takes those takes these; unlike those they can be
changed, have pydantic's methods and drop the fields that they do not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from datetime import datetime
from decimal import Decimal
from typing import Literal, Self, cast

from pydantic import BaseModel, ConfigDict, Field

from amplifier_sdk import results
from amplifier_sdk.convert import to_json

__all__ = [
    "ApprovalRequest",
    "ApprovalResponse",
    "ConfigField",
    "ContextInjection",
    "HookResult",
    "ModelInfo",
    "ModuleInfo",
    "Pricing",
    "ProviderInfo",
    "SessionStatus",
    "ToolResult",
]


class _PydanticMethods:
    """What modules call on a result as if it were a pydantic model."""

    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        raise NotImplementedError

    def model_dump(
        self,
        *,
        mode: str = "python",
        include: Iterable[str] | None = None,
        exclude: Iterable[str] | None = None,
        exclude_none: bool = False,
        exclude_defaults: bool = False,
        **_: object,
    ) -> dict[str, object]:
        """Write the fields as a dict; in the mode `json` as JSON data."""
        default = type(self)()
        written = {
            name: getattr(self, name)
            for name in self._names()
            if (include is None or name in include)
            and (exclude is None or name not in exclude)
            and not (exclude_none and getattr(self, name) is None)
            and not (exclude_defaults and getattr(self, name) == getattr(default, name))
        }
        if mode == "json":
            return cast("dict[str, object]", to_json(written))
        return written

    def model_dump_json(
        self,
        *,
        indent: int | None = None,
        exclude_none: bool = False,
        exclude: Iterable[str] | None = None,
        **_: object,
    ) -> str:
        """Write the fields as JSON text."""
        written = self.model_dump(
            mode="json", exclude_none=exclude_none, exclude=exclude
        )
        return json.dumps(written, indent=indent)

    def model_copy(
        self, *, update: Mapping[str, object] | None = None, deep: bool = False
    ) -> Self:
        """Return another of the same fields, with those of `update` in their place."""
        given = self.model_dump()
        if deep:
            given = deepcopy(given)
        return type(self)(**{**given, **(update or {})})

    @classmethod
    def model_validate(cls, value: object, **_: object) -> Self:
        """Read a dict of fields.

        Raises:
            ValueError: it is no dict, or a field does not fit.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"{cls.__name__} is read from a dict; got {value!r:.200}")
        return cls(**value)

    @classmethod
    def model_validate_json(cls, text: str | bytes, **_: object) -> Self:
        """Read JSON text."""
        return cls.model_validate(json.loads(text))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        raise TypeError(f"A {type(self).__name__} can be changed, so it has no hash")


class ContextInjection(BaseModel):
    """One text that a handler adds to what the model reads."""

    content: str
    role: Literal["system", "user", "assistant"] = "system"
    ephemeral: bool = False
    append_to_last_tool_result: bool = False
    hook_name: str = "unknown"
    event: str = ""


class HookResult(_PydanticMethods, results.HookResult):
    """What a handler answers."""

    def __init__(self, **fields: object) -> None:
        known = {name: fields[name] for name in _HOOK_RESULT if name in fields}
        options = known.get("approval_options")
        super().__init__(**known)  # type: ignore[arg-type]  # checked there
        if isinstance(options, list):
            vars(self)["approval_options"] = options
        self.context_injections: list[ContextInjection] = [
            ContextInjection.model_validate(each)
            for each in cast("list[object]", fields.get("context_injections") or [])
        ]

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return (*_HOOK_RESULT, "context_injections")


_HOOK_RESULT = (
    "action",
    "data",
    "reason",
    "context_injection",
    "context_injection_role",
    "ephemeral",
    "approval_prompt",
    "approval_options",
    "approval_timeout",
    "approval_default",
    "suppress_output",
    "user_message",
    "user_message_level",
    "user_message_source",
    "append_to_last_tool_result",
)


class ToolResult(_PydanticMethods, results.ToolResult):
    """What a tool call returned; `native` is the SDK's result that it shows, while nobody changed it."""

    def __init__(self, **fields: object) -> None:
        known = {name: fields[name] for name in _TOOL_RESULT if name in fields}
        if "is_error" in fields and "success" not in fields:
            known["success"] = fields["is_error"] is not True
        super().__init__(**known)  # type: ignore[arg-type]  # any value may be an output
        error = self.error
        if not self.success and self.output is None and isinstance(error, Mapping):
            # the model reads the output, so a failure has one
            vars(self)["output"] = error.get("message")
        self._source: results.ToolResult | None = None

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return _TOOL_RESULT

    @classmethod
    def of(cls, native: results.ToolResult) -> ToolResult:
        """Show a result of the SDK; `native` returns it while nobody changes this one."""
        if isinstance(native, cls):
            return native
        shown = cls(
            success=native.success,
            output=deepcopy(native.output),
            error=deepcopy(native.error),
            content=native.content,
        )
        shown._source = native
        shown._output = deepcopy(shown.output)
        return shown

    @property
    def native(self) -> results.ToolResult | None:
        """The SDK's result that this one shows; `None` for a module's own or a changed one."""
        source = self._source
        if source is None:
            return None
        is_same = (
            self.success == source.success
            and self.output == self._output
            and self.error == source.error
            and self.content == source.content
        )
        return source if is_same else None

    _output: object = None

    def get_serialized_output(self) -> str:
        """Return the output as the model reads it."""
        if self.output is None:
            return str(self)
        if isinstance(self.output, (dict, list)):
            return json.dumps(self.output, default=str)
        return _printable(str(self.output))

    def __str__(self) -> str:
        if not self.success:
            if isinstance(self.error, Mapping):
                return f"Error: {self.error.get('message', 'Unknown error')}"
            return "Failed"
        if self.output is None:
            return "Success"
        return str(self.output)


_TOOL_RESULT = ("success", "output", "error", "content")


def _printable(text: str) -> str:
    """Leave out control characters but for tabs and line ends."""
    return "".join(
        character for character in text if character >= " " or character in "\t\n\r"
    )


class Pricing(BaseModel):
    """Prices per million tokens."""

    input_per_million: Decimal
    output_per_million: Decimal
    cache_read_per_million: Decimal | None = None
    cache_write_per_million: Decimal | None = None
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")


class ModelInfo(BaseModel):
    """A model that a provider offers."""

    model_config = ConfigDict(protected_namespaces=())

    id: str
    display_name: str
    context_window: int
    max_output_tokens: int
    capabilities: list[str] = Field(default_factory=list)
    defaults: dict[str, object] = Field(default_factory=dict)
    pricing: Pricing | None = None


class ConfigField(BaseModel):
    """One setting that a provider asks a person for."""

    id: str
    display_name: str
    prompt: str
    field_type: Literal["text", "secret", "choice", "boolean"] = "text"
    env_var: str | None = None
    choices: list[str] | None = None
    required: bool = True
    default: str | None = None
    show_when: dict[str, str] | None = None
    requires_model: bool = False


class ProviderInfo(BaseModel):
    """What a provider is."""

    id: str
    display_name: str
    credential_env_vars: list[str] = Field(default_factory=list)
    capabilities: list[str] = Field(default_factory=list)
    defaults: dict[str, object] = Field(default_factory=dict)
    config_fields: list[ConfigField] = Field(default_factory=list)


class ModuleInfo(BaseModel):
    """A module that could be loaded."""

    id: str
    name: str
    version: str
    type: Literal["orchestrator", "provider", "tool", "context", "hook", "resolver"]
    mount_point: str
    description: str
    config_schema: dict[str, object] | None = None


class ApprovalRequest(BaseModel):
    """What a person is asked to allow."""

    tool_name: str
    action: str
    details: dict[str, object] = Field(default_factory=dict)
    risk_level: str
    timeout: float | None = Field(default=None, gt=0)


class ApprovalResponse(BaseModel):
    """What the person answered."""

    approved: bool
    reason: str | None = None
    remember: bool = False


class SessionStatus(BaseModel):
    """What a session is doing and what it did."""

    session_id: str
    started_at: datetime = Field(default_factory=datetime.now)
    ended_at: datetime | None = None
    status: Literal["running", "completed", "failed", "cancelled"] = "running"
    total_messages: int = 0
    tool_invocations: int = 0
    tool_successes: int = 0
    tool_failures: int = 0
    total_input_tokens: int = 0
    total_output_tokens: int = 0
    cost_usd: Decimal | None = None
    last_activity: datetime | None = None
    last_error: dict[str, object] | None = None

    def to_dict(self) -> dict[str, object]:
        """Write it as JSON data, without what is not known."""
        return self.model_dump(mode="json", exclude_none=True)
