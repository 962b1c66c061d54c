"""Asking an application's resolver where a module's code is.

Resolvers and sources are the application's; they may block (a clone, a look into a cache), so what is not
async runs in a thread, and the whole has a deadline. Source: the module source protocol.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

import anyio

from amplifier_sdk.errors import ModuleError, ModuleLoadError, ModuleValidationError
from amplifier_sdk.threads import run_blocking

__all__ = ["find_source", "open_source"]

HINTS: Final = ("source_hint", "profile_hint", "profile_source")
"""The names under which a resolver may ask for the plan's `source`."""


async def find_source(
    resolver: object, module_id: str, hint: object, timeout: float
) -> object:
    """Ask a resolver for the source of a module: its `async_resolve` if it has one, else its `resolve`.

    Args:
        resolver: what is mounted at `module-source-resolver`.
        module_id: the module.
        hint: the plan's `source`; given under whichever of the three names the resolver takes.
        timeout: seconds.

    Raises:
        ModuleNotFoundError: the resolver does not know the module.
        ModuleLoadError: it failed, or took too long.
    """
    name = "resolve"
    if hasattr(resolver, "async_resolve"):
        name = "async_resolve"
    resolve = getattr(resolver, name, None)
    who = f"{type(resolver).__qualname__}.{name}"
    if not callable(resolve):
        reason = f"{type(resolver).__qualname__} is mounted as module source resolver and has no method 'resolve'"
        raise ModuleValidationError(module_id, reason)
    positional, named = _hinted(resolve, hint)
    return await _call(
        module_id, who, partial(resolve, module_id, *positional, **named), timeout
    )


async def open_source(source: object, module_id: str, timeout: float) -> str:
    """Resolve a source to a folder.

    Raises:
        ModuleNotFoundError: the source says so.
        ModuleLoadError: it failed, took too long, or gave something else than a folder.
    """
    who = f"{type(source).__qualname__}.resolve"
    resolve = getattr(source, "resolve", None)
    if not callable(resolve):
        raise ModuleLoadError(
            module_id,
            f"the module source resolver answered with {source!r:.200}, which has no method 'resolve'",
        )
    path = await _call(module_id, who, resolve, timeout)
    return _folder(module_id, who, path)


def _folder(module_id: str, who: str, path: object) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise ModuleLoadError(
            module_id,
            f"{who} answered with {path!r:.200}; it must be the path of a folder",
        )
    folder = os.path.abspath(os.fsdecode(path))
    if not os.path.isdir(folder):
        raise ModuleLoadError(
            module_id, f"{who} answered with {folder}, which is no folder"
        )
    return folder


async def _call(
    module_id: str, who: str, function: Callable[[], object], timeout: float
) -> object:
    """Call what may block, may be async, or may fail."""
    answer: object = None
    with anyio.move_on_after(timeout) as scope:
        try:
            if inspect.iscoroutinefunction(getattr(function, "func", function)):
                answer = function()
            else:
                answer = await run_blocking(function, name=who)
            if isinstance(answer, Awaitable):
                answer = await answer
        except ModuleError as error:
            if error.module_id:
                raise
            raise error.amended(module_id=module_id) from error
        except (Exception, SystemExit) as error:  # foreign code
            raise ModuleLoadError(
                module_id, f"{who} failed: {type(error).__name__}: {error}"
            ) from error
    if scope.cancelled_caught:
        raise ModuleLoadError(module_id, f"{who} took longer than {timeout:g} s")
    return answer


def _hinted(
    resolve: object, hint: object
) -> tuple[tuple[object, ...], Mapping[str, object]]:
    """Return the arguments that carry the hint: by the names that are taken, else as the second one."""
    assert callable(resolve)
    try:
        parameters = list(inspect.signature(resolve).parameters.values())
    except (TypeError, ValueError):
        # a built-in or a proxy says nothing; the protocol has two arguments
        return (hint,), {}
    names = [
        p.name
        for p in parameters
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = {name: hint for name in HINTS if takes_any or name in names}
    if named:
        return (), named
    positional = [
        p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    takes_second = len(positional) > 1 or any(
        p.kind is p.VAR_POSITIONAL for p in parameters
    )
    return ((hint,) if takes_second else ()), {}
