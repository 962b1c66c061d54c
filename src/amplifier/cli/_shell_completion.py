"""What a shell offers where a command takes a name: sessions, profiles, collections, plugins, modules, providers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from amplifier.cli._terminal import visible

if TYPE_CHECKING:
    from amplifier.app.directories import Places

__all__ = ["collections", "modules", "plugins", "profiles", "providers", "sessions"]


def sessions(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return the sessions of this project whose id or name goes on like that."""
    # read when Tab is pressed, and not for every command
    from amplifier.app.known_names import session_names

    return _offered(session_names, begun)


def profiles(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return the profiles whose names go on like that."""
    from amplifier.app.known_names import profile_names

    return _offered(profile_names, begun)


def collections(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return the installed collections whose names go on like that."""
    from amplifier.app.known_names import collection_names

    return _offered(collection_names, begun)


def plugins(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return the plugins of the person's own folder whose names go on like that."""
    from amplifier.app.known_names import plugin_names

    return _offered(plugin_names, begun)


def modules(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return the installed modules whose ids go on like that."""
    from amplifier.app.known_names import module_ids

    return _offered(module_ids, begun)


def providers(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Return the installed providers whose names go on like that, or their ids where these were begun."""
    from amplifier.app.known_names import module_ids, provider_names

    return _offered(provider_names, begun) or [
        name for name in _offered(module_ids, begun) if name.startswith("provider-")
    ]


def _offered(names: Callable[[Places], Iterable[str]], begun: str) -> list[str]:
    """Return the names that a shell can take: one word each, and nothing that a terminal obeys."""
    from amplifier.app.directories import Places

    try:
        found = {name for name in names(Places.find()) if name.startswith(begun)}
    except OSError:  # a folder that cannot be read has no names
        return []
    return sorted(
        name
        for name in found
        if visible(name) == name and not any(map(str.isspace, name))
    )
