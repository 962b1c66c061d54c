"""Results, and what modules say of providers, models and themselves.

The two results subclass the SDK's, so that whatever takes those takes these; unlike those they can be
changed, have pydantic's methods and drop the fields that they do not know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    model_serializer,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from amplifier_sdk import results
from amplifier_sdk.content import block_to_dict

__all__ = [
    "ApprovalRequest",
    "ApprovalResponse",
    "ConfigField",
    "ContextInjection",
    "Cost",
    "HookResult",
    "ModelInfo",
    "ModuleInfo",
    "Pricing",
    "ProviderInfo",
    "SessionStatus",
    "ToolResult",
]


class _PydanticMethods:
    """What modules call on a result as if it were a pydantic model: a model of the same fields does it."""

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        if name in self._model.model_fields:
            self.model_fields_set.add(name)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)

    _model: ClassVar[type[BaseModel]]
    model_fields_set: set[str]

    @property
    def _fields(self) -> BaseModel:
        names = self._model.model_fields
        return self._model.model_construct(
            _fields_set=self.model_fields_set,
            **{name: getattr(self, name) for name in names},
        )

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Write the fields as a dict; in the mode `json` as JSON data."""
        return self._fields.model_dump(**options)

    def model_dump_json(self, **options: Any) -> str:
        """Write the fields as JSON text."""
        return self._fields.model_dump_json(**options)

    def model_copy(
        self, *, update: Mapping[str, Any] | None = None, deep: bool = False
    ) -> Self:
        """Return another of the same fields, with those of `update` in their place."""
        given = {name: getattr(self, name) for name in self._model.model_fields}
        if deep:
            given = deepcopy(given)
        return type(self)(**{**given, **(update or {})})

    @classmethod
    def model_validate(cls, value: Any, **_: Any) -> Self:
        """Read a dict of fields.

        Raises:
            ValidationError: it is no dict, or a field does not fit.
        """
        if isinstance(value, cls):
            return value
        return cls(**dict(cls._model.model_validate(value)))

    @classmethod
    def model_validate_json(cls, text: str | bytes, **_: Any) -> Self:
        """Read JSON text."""
        return cls(**dict(cls._model.model_validate_json(text)))

    @classmethod
    def model_json_schema(cls, **options: Any) -> dict[str, Any]:
        """Return the JSON Schema of the fields."""
        return cls._model.model_json_schema(**options)

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: Any) -> CoreSchema:
        """Let a model have a field of this class."""
        return core_schema.no_info_plain_validator_function(
            cls.model_validate,
            serialization=core_schema.plain_serializer_function_ser_schema(
                cls.model_dump, return_schema=handler(dict)
            ),
        )

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield the fields with their values, as pydantic's models do."""
        return iter(self._fields)

    def __repr__(self) -> str:
        fields = repr(self._fields).removeprefix(self._model.__name__)
        return f"{type(self).__name__}{fields}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return dict(self) == dict(other)

    def __hash__(self) -> int:
        raise TypeError(f"A {type(self).__name__} can be changed, so it has no hash")


def _refuse_float(value: object) -> object:
    if isinstance(value, float):
        raise ValueError(
            "a cost is a Decimal or its text, not a float"
        )  # pydantic reads this one
    return value


Cost: TypeAlias = Annotated[
    Decimal, BeforeValidator(_refuse_float), PlainSerializer(str)
]
"""US dollars: exact, and written as text."""


class ContextInjection(BaseModel):
    """One text that a handler adds to what the model reads."""

    content: str
    role: Literal["system", "user", "assistant"] = "system"
    ephemeral: bool = False
    append_to_last_tool_result: bool = False
    hook_name: str = "unknown"
    event: str = ""


class _HookResultFields(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(title="HookResult")

    action: Literal["continue", "deny", "modify", "inject_context", "ask_user"] = (
        "continue"
    )
    data: dict[str, Any] | None = None
    reason: str | None = None
    context_injection: str | None = None
    context_injection_role: Literal["system", "user", "assistant"] = "system"
    ephemeral: bool = False
    approval_prompt: str | None = None
    approval_options: list[str] | None = None
    approval_timeout: float = 300.0
    approval_default: Literal["allow", "deny"] = "deny"
    suppress_output: bool = False
    user_message: str | None = None
    user_message_level: Literal["info", "warning", "error"] = "info"
    user_message_source: str | None = None
    append_to_last_tool_result: bool = False
    context_injections: list[ContextInjection] = Field(default_factory=list)


class HookResult(_PydanticMethods, results.HookResult):
    """What a handler answers."""

    _model: ClassVar[type[BaseModel]] = _HookResultFields
    model_fields: ClassVar[dict[str, FieldInfo]] = _HookResultFields.model_fields

    def __init__(self, **fields: Any) -> None:
        model = _HookResultFields(**fields)
        checked = dict(model)
        injections = checked.pop("context_injections")
        options = checked.pop("approval_options")
        super().__init__(**checked)
        # lists, as the original has them
        vars(self).update(
            approval_options=options,
            context_injections=injections,
            model_fields_set=model.model_fields_set,
        )

    if TYPE_CHECKING:
        context_injections: list[ContextInjection]


_IMAGE_OMITTED = "[image left out; the model receives it]"


class _ToolResultFields(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(title="ToolResult")

    success: bool = True
    output: Any = None
    error: dict[str, Any] | None = None
    content: list[Any] | None = None

    @model_serializer(mode="wrap")
    def _without_absent_content(self, write: SerializerFunctionWrapHandler) -> Any:
        written = write(self)
        if self.content is None:
            written.pop("content", None)
        return written


class ToolResult(_PydanticMethods, results.ToolResult):
    """What a tool call returned; `native` is the SDK's result that it shows, while nobody changed it."""

    _model: ClassVar[type[BaseModel]] = _ToolResultFields
    model_fields: ClassVar[dict[str, FieldInfo]] = _ToolResultFields.model_fields

    def __init__(self, **fields: Any) -> None:
        if "is_error" in fields and "success" not in fields:
            fields["success"] = fields["is_error"] is not True
        model = _ToolResultFields(**fields)
        super().__init__(**dict(model))
        vars(self).update(
            content=model.content, model_fields_set=model.model_fields_set
        )
        error = self.error
        if not self.success and self.output is None and isinstance(error, Mapping):
            # the model reads the output, so a failure has one
            vars(self)["output"] = error.get("message")
        self._source: results.ToolResult | None = None

    @classmethod
    def of(cls, native: results.ToolResult) -> ToolResult:
        """Show a result of the SDK; `native` returns it while nobody changes this one."""
        if isinstance(native, cls):
            return native
        shown = cls(
            success=native.success,
            output=deepcopy(native.output),
            error=None if native.error is None else deepcopy(dict(native.error)),
            content=None
            if native.content is None
            else [block_to_dict(block) for block in native.content],
        )
        shown._source = native
        shown._content = deepcopy(shown.content)
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
            and self.content == self._content
        )
        return source if is_same else None

    _output: object = None
    _content: object = None

    def get_serialized_output(self) -> str:
        """Return the output as the model reads it."""
        if self.output is None:
            text = str(self)
            return "Error: Failed" if text == "Failed" else text
        if isinstance(self.output, (dict, list)):
            return json.dumps(self.output, default=str)
        # without lone surrogates, and control characters but for tabs and line ends
        return "".join(
            character
            for character in str(self.output)
            if (character >= " " and not "\ud800" <= character <= "\udfff")
            or character in "\t\n\r"
        )

    def safe_hook_presentation(self) -> dict[str, Any]:
        """Write the result as the data of an event: JSON, without the bytes of images."""
        written = self.model_dump(mode="json")
        if self.content is not None:
            written["content"] = [
                {"type": "text", "text": _IMAGE_OMITTED}
                if block.get("type") == "image"
                else block
                for block in written["content"]
            ]
        return written

    def __str__(self) -> str:
        if not self.success:
            if isinstance(self.error, Mapping):
                return f"Error: {self.error.get('message', 'Unknown error')}"
            return "Failed"
        if self.output is None:
            return "Success"
        return str(self.output)


class Pricing(BaseModel):
    """Prices per million tokens."""

    input_per_million: Decimal
    output_per_million: Decimal
    cache_read_per_million: Decimal | None = None
    cache_write_per_million: Decimal | None = None
    currency: str = Field(default="USD", pattern="^[A-Z]{3}$")


class ModelInfo(BaseModel):
    """A model that a provider offers."""

    model_config: ClassVar[ConfigDict] = ConfigDict(protected_namespaces=())

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
    cost_usd: Cost | None = None
    last_activity: datetime | None = None
    last_error: dict[str, object] | None = None

    def to_dict(self) -> dict[str, object]:
        """Write it as JSON data, without what is not known."""
        return self.model_dump(mode="json", exclude_none=True)
