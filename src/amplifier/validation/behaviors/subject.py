"""The module whose behaviours are checked, and what its author says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeAlias, TypeVar

import attrs

from amplifier.kernel.modules.loader import ModuleLoader
from amplifier_sdk.chat import ChatRequest
from amplifier_sdk.convert import from_json
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.messages import Message

__all__ = [
    "SAMPLES",
    "Around",
    "Case",
    "HookSamples",
    "ProviderSamples",
    "Samples",
    "Subject",
    "ToolSamples",
]

S = TypeVar("S", bound="Samples")

Around: TypeAlias = Callable[
    [], AbstractAsyncContextManager[Mapping[str, JSONValue] | None]
]
"""Opened around each check; what it yields is added to the module's configuration."""


@attrs.frozen(kw_only=True)
class Samples:
    """What an author says about a module so that more can be checked.

    Args:
        bad_config: a configuration that the module must refuse.
        files: what stands in the session's working directory, by relative path.
        capabilities: what the application offers the module, by name.
        around: opened around each check, for a server that stands for the network.
    """

    bad_config: Mapping[str, JSONValue] | None = None
    files: Mapping[str, str] = attrs.field(factory=dict)
    capabilities: Mapping[str, object] = attrs.field(factory=dict)
    around: Around | None = None


@attrs.frozen(kw_only=True)
class ToolSamples(Samples):
    """What a tool can be called with, by the tool's name.

    Args:
        arguments: calls that succeed, each time they are made. Without any, arguments are made up from the schema.
        failing: calls that fit the schema and fail.
        slow: a call that lasts until it is cancelled, or for minutes.
    """

    arguments: Mapping[str, tuple[Mapping[str, JSONValue], ...]] = attrs.field(
        factory=dict
    )
    failing: Mapping[str, tuple[Mapping[str, JSONValue], ...]] = attrs.field(
        factory=dict
    )
    slow: Mapping[str, Mapping[str, JSONValue]] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Case:
    """A request that brings a provider to do a certain thing.

    Args:
        prompt: what the person says.
        request: further fields of the `ChatRequest`, as JSON.
        config: the module's configuration for this case; default the subject's own.
    """

    prompt: str = "Say hello."
    request: Mapping[str, JSONValue] = attrs.field(factory=dict)
    config: Mapping[str, JSONValue] | None = None

    def build(self, *messages: Message) -> ChatRequest:
        """Make the request; `messages` are a history before the prompt."""
        request = from_json({"messages": [], **self.request}, ChatRequest)
        # the field is required: an empty list stands in for the messages at first
        return attrs.evolve(
            request, messages=[*messages, Message(role="user", content=self.prompt)]
        )


@attrs.frozen(kw_only=True)
class ProviderSamples(Samples):
    """What brings a provider to do each thing; what is `None` is not checked.

    Args:
        talks: answers with text.
        calls: calls a tool; its request offers one.
        thinks: answers with visible thinking before the text.
        garbles: calls a tool with arguments that are no JSON object.
        is_cut: the answer ends at the limit of tokens.
        fails: the vendor refuses; the request after it, as in `talks`, is answered.
        waits: nothing comes for minutes.
    """

    talks: Case = attrs.field(factory=Case)
    calls: Case | None = None
    thinks: Case | None = None
    garbles: Case | None = None
    is_cut: Case | None = None
    fails: Case | None = None
    waits: Case | None = None


@attrs.frozen(kw_only=True)
class HookSamples(Samples):
    """What a hook's handlers are given besides the usual, by event; for example what makes them deny."""

    payloads: Mapping[str, tuple[Mapping[str, JSONValue], ...]] = attrs.field(
        factory=dict
    )


SAMPLES: Final[Mapping[str, type[Samples]]] = {
    "tool": ToolSamples,
    "provider": ProviderSamples,
    "hook": HookSamples,
    "orchestrator": Samples,
    "context": Samples,
}
"""Which samples each module type takes; all but `capabilities` and `around` can be read from JSON by `read_config`."""


@attrs.frozen(kw_only=True)
class Subject:
    """A module under test. Every check mounts it anew in a session of its own.

    Args:
        kind: its type.
        module: whatever an entry point may name, or the id of an installed module.
        config: its configuration.
        samples: what its author says of it, an instance of the class that `SAMPLES` has for the type.
        loader: where an id is looked up; default what is installed.

    Raises:
        ValueError: there are no behaviours for the type.
        TypeError: the samples are those of another type.
    """

    kind: str = attrs.field(validator=attrs.validators.in_(SAMPLES))
    module: object
    config: Mapping[str, JSONValue] = attrs.field(factory=dict)
    samples: Samples | None = None
    loader: ModuleLoader | None = None

    def __attrs_post_init__(self) -> None:
        wanted = SAMPLES[self.kind]
        # samples of another type would be passed over, and nothing checked by them
        if self.samples is not None and not isinstance(self.samples, wanted):
            raise TypeError(
                f"The samples of a {self.kind} are {wanted.__name__}; got {type(self.samples).__name__}"
            )

    def samples_as(self, cls: type[S]) -> S:
        """Return the samples as those of a class; empty ones when there are none."""
        if isinstance(self.samples, cls):
            return self.samples
        return cls()
