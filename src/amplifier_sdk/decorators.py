"""The decorators that make a class a module of one type.

```python
@provider
class Echo(BaseProvider):
    def __init__(self, config: EchoConfig) -> None: ...
```

The entry point names the class. What it must have is checked by the type checker here and by the loader
at mount.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from amplifier_sdk.contracts import ContextManager, Orchestrator, Provider
from amplifier_sdk.modules import MODULE_ATTRIBUTE, ModuleDefinition

__all__ = ["context", "hook", "module", "orchestrator", "provider", "toolset"]

T = TypeVar("T")
ContextT = TypeVar("ContextT", bound=ContextManager)
OrchestratorT = TypeVar("OrchestratorT", bound=Orchestrator)
ProviderT = TypeVar("ProviderT", bound=Provider)


def provider(cls: type[ProviderT]) -> type[ProviderT]:
    """Make a class a provider module."""
    return _module("provider", cls)


def orchestrator(cls: type[OrchestratorT]) -> type[OrchestratorT]:
    """Make a class an orchestrator module."""
    return _module("orchestrator", cls)


def context(cls: type[ContextT]) -> type[ContextT]:
    """Make a class a context module."""
    return _module("context", cls)


def toolset(cls: type[T]) -> type[T]:
    """Make a class with `@tool` methods a tool module of all of them."""
    return _module("tool", cls)


def hook(cls: type[T]) -> type[T]:
    """Make a class with `@on` methods a hook module."""
    return _module("hook", cls)


def module(kind: str) -> Callable[[type[T]], type[T]]:
    """Make a class a module of an application's own type; `kind` is the name of its `ModuleKind`."""
    return partial(_module, kind)


def _module(kind: str, cls: type[T]) -> type[T]:
    setattr(cls, MODULE_ATTRIBUTE, ModuleDefinition(kind=kind, factory=cls))
    return cls
