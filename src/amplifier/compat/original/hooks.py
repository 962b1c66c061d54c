"""The hook registry of the original: handlers get a JSON copy, and answer with its own results or dicts.

`HookRegistry.over(hooks)` is the registry of a session as modules of the original see it; it shares all that the
session's registry has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self, cast

from amplifier.compat.handlers import Handler, OriginalHandler
from amplifier.compat.original.models import ContextInjection, HookResult
from amplifier.compat.plain import plain_object
from amplifier.compat.results import original_result
from amplifier.kernel.reports import report
from amplifier.kernel.spans import current_module
from amplifier.kernel.turn.registry import HookRegistry as KernelRegistry
from amplifier_sdk.contracts import Unregister

__all__ = ["ContextInjection", "HookRegistry", "HookResult"]

NO_DEADLINE = 365 * 86_400.0
"""Seconds that a handler may take: it may ask a person, and the original has no deadline."""


_VIEW = "_original_view"
"""Where a registry has its view: modules compare registries by identity."""


class HookRegistry(KernelRegistry):
    """The handlers of a session, and what calls them."""

    _base: KernelRegistry | None = None

    @classmethod
    def over(cls, hooks: KernelRegistry) -> Self:
        """Show a session's registry to modules of the original."""
        known = vars(hooks).get(_VIEW)
        if isinstance(known, _Shown) and known.base is hooks:
            return known  # type: ignore[return-value]  # the one subclass there is
        shown = _Shown.__new__(_Shown)
        shown.__dict__ = hooks.__dict__
        shown.base = hooks
        vars(hooks)[_VIEW] = shown
        return shown  # type: ignore[return-value]  # the one subclass there is

    def register(  # type: ignore[override]  # the original's signature
        self,
        event: str,
        handler: Handler,
        priority: int = 0,
        name: str | None = None,
        **native: object,
    ) -> Unregister:
        """Call a handler on each event; return what takes that back.

        With an option that only the session's registry has, the handler is one of the session's: the kernel registers
        so on the sessions of the original's applications.

        Raises:
            TypeError: a module gives such an option, or the handler cannot be called.
        """
        if native:
            if self.is_module(current_module.get()):
                raise TypeError(f"register() takes no {', '.join(native)}")
            return cast(
                "Unregister",
                super().register(event, handler, priority, name, **native),  # type: ignore[call-overload]  # passed on
            )
        # named here: the kernel would name it after the adapter
        if name is None:
            name = getattr(handler, "__name__", None) or type(handler).__name__
            name = self._free(name)
        return super().register(
            event, OriginalHandler(handler), priority, name, timeout=NO_DEADLINE
        )

    on = register  # type: ignore[assignment]  # likewise

    def unregister(self, name: str) -> None:
        """Take back what modules of the original registered under a name; a handler of the session's stays."""
        retained = [
            entry
            for entry in self._own
            if entry.name != name or not isinstance(entry.handler, OriginalHandler)
        ]
        if any(entry.name == name for entry in retained):
            report("compat.handler_not_unregistered", name=name)
        self._own = retained
        self.refresh()

    def _free(self, name: str) -> str:
        taken = {each for names in self.list_handlers().values() for each in names}
        if name not in taken:
            return name
        return f"{name}_{self.registered}"

    async def emit(  # type: ignore[override]  # the original's answer
        self, event: str, data: Mapping[str, object] | None = None
    ) -> HookResult:
        """Call the event's handlers in turn and return what they decided together."""
        shown = _fields(data)
        given = plain_object(shown)
        emission = await self._emitter.emit(event, given)
        return original_result(emission, shown, given)

    @property
    def _emitter(self) -> KernelRegistry:
        return _Plain(self)

    async def emit_and_collect(
        self, event: str, data: Mapping[str, object], timeout: float = 1.0
    ) -> list[Mapping[str, object]]:
        """Call the event's handlers in turn and return the data of their answers."""
        given = plain_object(_fields(data))
        return await super().emit_and_collect(event, given, timeout)


def _fields(data: object) -> dict[str, object]:
    """Return the data of an event: a dict, a pydantic model's fields, or nothing that handlers could read."""
    write: object = getattr(data, "model_dump", None)
    if callable(write):
        data = write()
    return dict(data) if isinstance(data, Mapping) else {}


class _Shown(HookRegistry):
    """The registry of a session; what is emitted goes through that one, which may be a loop's."""

    __slots__ = ("base",)

    base: KernelRegistry

    @property
    def _emitter(self) -> KernelRegistry:
        return self.base


class _Plain(KernelRegistry):
    """A registry under the kernel's own methods."""

    def __init__(self, registry: KernelRegistry) -> None:
        self.__dict__ = registry.__dict__
