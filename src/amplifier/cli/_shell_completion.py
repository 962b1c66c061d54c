"""What a shell offers where a command takes a name: sessions, profiles, collections, plugins, modules, providers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._terminal import visible

if TYPE_CHECKING:
    from amplifier.app.directories import AppDirs

__all__ = ["collections", "modules", "plugins", "profiles", "providers", "sessions"]

_Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[str]]


def _names_of(what: str) -> _Completer:
    """Make what offers the names that a function of `known_names` finds when Tab is pressed."""

    def complete(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
        from amplifier.app import known_names  # most commands complete nothing

        return _offered(getattr(known_names, what), begun)

    return complete


sessions: Final = _names_of("session_names")
"""Offers the sessions of this project, by id or name."""

profiles: Final = _names_of("profile_names")
"""Offers the profiles."""

collections: Final = _names_of("collection_names")
"""Offers the installed collections."""

plugins: Final = _names_of("plugin_names")
"""Offers the plugins of the person's own folder."""

modules: Final = _names_of("module_ids")
"""Offers the installed modules by their ids."""


def providers(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return the installed providers whose names go on like that, or their ids where these were begun."""
    from amplifier.app.known_names import module_ids, provider_names

    return _offered(provider_names, begun) or [
        name for name in _offered(module_ids, begun) if name.startswith("provider-")
    ]


def _offered(names: Callable[[AppDirs], Iterable[str]], begun: str) -> list[str]:
    """Return the names that a shell can take: one word each, and nothing that a terminal obeys."""
    try:
        found = {name for name in names(find_app_dirs()) if name.startswith(begun)}
    except OSError:  # a folder that cannot be read has no names
        return []
    return sorted(
        name
        for name in found
        if visible(name) == name and not any(map(str.isspace, name))
    )
