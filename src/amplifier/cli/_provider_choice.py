"""Choosing a provider for the first set-up: one that is installed, a server of this machine, or one to install."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._quiet import run_quietly
from amplifier.cli._terminal import alert, notice, one_line, visible
from amplifier.cli.provider import key_text

if TYPE_CHECKING:
    from typing import TypeAlias

    from amplifier.app.providers.details import ProviderState
    from amplifier.app.providers.entries import Survey
    from amplifier.app.providers.installable import InstallableProvider
    from amplifier.app.providers.local_servers import LocalServer

    Picked: TypeAlias = tuple[ProviderState, LocalServer | None] | InstallableProvider

__all__ = ["choose_provider", "pick"]

TIMEOUT = 10.0
"""Seconds that mounting one provider may take."""


def choose_provider(
    ctx: click.Context, id: str | None, *, asks: bool, installs: bool
) -> tuple[Survey, ProviderState, LocalServer | None]:
    """Return the providers there are, the chosen one, and the server of this machine that it is to ask.

    Args:
        ctx: the command's.
        id: the provider that an option names.
        asks: whether somebody is there to be asked.
        installs: whether one that is not installed may be installed.
    """
    from amplifier.app.providers.entries import survey_providers

    if id is not None and installs:
        _install_named(id, asks=asks)
    while True:
        survey = survey_providers(find_app_dirs())
        offers = _offers() if installs and id is None else []
        picked = _choose(ctx, survey, id, offers, asks=asks)
        if isinstance(picked, tuple):
            return survey, *picked
        _install(picked, asks=asks)


def pick(what: str, choices: Sequence[str], default: int) -> int:
    """Let a person pick one of a list, and return its index."""
    for number, choice in enumerate(choices, 1):
        click.echo(f"  {number}  {visible(choice)}", err=True)
    number = click.prompt(
        what, type=click.IntRange(1, len(choices)), default=default + 1, err=True
    )
    return int(number) - 1


def _choose(
    ctx: click.Context,
    survey: Survey,
    id: str | None,
    offers: Sequence[InstallableProvider],
    *,
    asks: bool,
) -> Picked:
    """Return the provider, and the server on this machine that it is to ask, where one was chosen."""
    from amplifier.app.providers.details import inspect_providers
    from amplifier.app.providers.entries import find_entry
    from amplifier.app.providers.local_servers import find_local_servers

    if id is None:
        entries = survey.entries
    else:
        entries = (find_entry(survey.entries, id),)
    look = partial(
        inspect_providers, entries, survey.composition, survey.keys, timeout=TIMEOUT
    )
    states = run_quietly(ctx, look)
    servers: Sequence[LocalServer] = []
    if id is None:
        servers = _usable(run_quietly(ctx, find_local_servers), states)
    if not asks or id is not None:
        _report_offers(offers)
        return _suggested(states, servers)
    return _picked(states, servers, offers)


def _usable(
    servers: Sequence[LocalServer], states: Sequence[ProviderState]
) -> list[LocalServer]:
    """Return the servers whose provider is installed; of others say how to get it."""
    from amplifier.app.modules.own import how_to_get

    installed = {state.entry.module for state in states}
    for server in servers:
        if server.module not in installed:
            notice(
                f"{server.name} runs here; to use it, {how_to_get(server.module)}, then 'amplifier init' again"
            )
    return [server for server in servers if server.module in installed]


def _suggested(
    states: Sequence[ProviderState], servers: Sequence[LocalServer]
) -> tuple[ProviderState, LocalServer | None]:
    """Return the provider that is taken where nobody is asked."""
    from amplifier.app.setup import suggest

    best = suggest(states)
    if servers and not _is_keyed(best):
        return _of_server(servers[0], states), servers[0]
    if best is None:
        raise click.ClickException(_no_provider(states))
    return best, None


def _picked(
    states: Sequence[ProviderState],
    servers: Sequence[LocalServer],
    offers: Sequence[InstallableProvider],
) -> Picked:
    """Return the provider, the server, or what is to be installed that the person picks."""
    from amplifier.app.setup import suggest

    usable = [state for state in states if not state.problem]
    lines = [f"{state.entry.name} (key: {key_text(state)})" for state in usable]
    lines += [
        f"{server.name} on this machine ({', '.join(server.models[:3])})"
        for server in servers
    ]
    lines += map(_offer_text, offers)
    if not lines:
        raise click.ClickException(_no_provider(states))
    best = suggest(states)
    default = 0 if best is None else usable.index(best)
    if not _is_keyed(best):
        if offers and offers[0].has_key:
            default = len(usable) + len(servers)
        elif servers:
            default = len(usable)
    number = pick("Provider", lines, default)
    if number < len(usable):
        return usable[number], None
    if number >= len(usable) + len(servers):
        return offers[number - len(usable) - len(servers)]
    server = servers[number - len(usable)]
    return _of_server(server, states), server


def _is_keyed(state: ProviderState | None) -> bool:
    return state is not None and any(key.source for key in state.keys)


def _report_offers(offers: Sequence[InstallableProvider]) -> None:
    """Name the providers that are not installed and whose key is there."""
    for offer in offers:
        if offer.has_key:
            notice(
                f"{offer.variable} is set; to use it: {offer.command}, then 'amplifier init' again"
            )


def _no_provider(states: Sequence[ProviderState]) -> str:
    if states:
        problem = f": {one_line(states[0].problem, 300)}"
    else:
        # wrong usage alone names it
        from amplifier_kit.installation import install_command

        problem = f"; {install_command('amplifier[local]')}"
    return f"there is no provider that could be used{problem}"


def _of_server(server: LocalServer, states: Sequence[ProviderState]) -> ProviderState:
    import attrs  # with the runtime: help and wrong usage need none

    state = next(each for each in states if each.entry.module == server.module)
    return attrs.evolve(state, keys=(), needs_key=False, problem="")


def _offers() -> list[InstallableProvider]:
    """Return what can be installed, what a key is there for first."""
    from amplifier.app.plans.base_plans import installed_modules
    from amplifier.app.providers.installable import installable_providers

    return installable_providers(installed_modules())


def _offer_text(offer: InstallableProvider) -> str:
    if offer.has_key:
        return f"{offer.module} (not installed; {offer.variable} is set)"
    return f"{offer.module} (not installed)"


def _install(offer: InstallableProvider, *, asks: bool) -> None:
    alert(f"{offer.module} is not installed; this installs it: {offer.command}")
    if not asks or click.confirm("Install it now?", default=True, err=True):
        offer.install()
        notice(f"{offer.module} is installed.")


def _install_named(id: str, *, asks: bool) -> None:
    for offer in _offers():
        if id in (offer.module, offer.module.removeprefix("provider-")):
            _install(offer, asks=asks)
