"""`amplifier init`: the first set-up, asked at a terminal or given by options."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._options import flag, scope_option
from amplifier.cli._provider_choice import choose_provider, pick
from amplifier.cli._quiet import run_quietly
from amplifier.cli._shell_completion import profiles, providers
from amplifier.cli._terminal import notice, one_line, say

if TYPE_CHECKING:
    from amplifier.app.providers.details import ProviderState
    from amplifier.app.providers.entries import Survey
    from amplifier.app.providers.local_servers import LocalServer
    from amplifier_sdk.chat import ConfigField
    from amplifier_sdk.jsontypes import JSONObject
    from amplifier_sdk.secret import Secret

__all__ = ["init"]


@click.command()
@click.option(
    "--provider",
    "id",
    metavar="ID",
    help="The provider module.",
    shell_complete=providers,
)
@click.option(
    "--model",
    metavar="NAME",
    help="The model of requests that name none; default the provider's.",
)
@click.option(
    "--key-from-env",
    metavar="NAME",
    help="Keep the key that stands in this environment variable.",
)
@flag("--key-stdin", help="Keep the key that is the first line of standard input.")
@click.option(
    "--profile",
    metavar="NAME",
    help="The profile of new sessions.",
    shell_complete=profiles,
)
@scope_option
@flag("-y", "--yes", help="Ask nothing: what is not given is what would be suggested.")
@flag("--dry-run", help="Try it and say what would be done, but change nothing.")
@flag("--test", help="Send one tiny request at the end; it may cost something.")
@click.pass_context
def init(
    ctx: click.Context,
    id: str | None,
    model: str | None,
    key_from_env: str | None,
    key_stdin: bool,
    profile: str | None,
    scope: str,
    yes: bool,
    dry_run: bool,
    test: bool,
) -> None:
    """Choose a provider, keep its key, choose model and profile.

    At a terminal what no option says is asked, and a provider that is not installed is installed after a yes.
    Elsewhere, and with --yes, the provider whose key is there is taken, else Ollama, LM Studio or llama.cpp where it
    runs on this machine, else the embedded model, which needs no key. A key is never shown; it is stored in the
    system's keyring, else in a file that only you read.
    """
    if key_stdin and key_from_env is not None:
        raise click.UsageError(
            "--key-stdin and --key-from-env both give the key; use one of them"
        )
    if dry_run and test:
        raise click.UsageError(
            "--test asks what was set up, and --dry-run sets nothing up; use one of them"
        )
    asks = not yes and not key_stdin and sys.stdin.isatty()
    if not asks and not yes and id is None:
        raise click.UsageError(
            "without a terminal nothing can be asked: give --provider ID, or --yes"
        )
    key = _given_key(key_from_env, key_stdin)

    from amplifier.app.setup import SetupDecision, carry_out

    survey, state, server = choose_provider(
        ctx, id, asks=asks, installs=(asks or yes) and not dry_run
    )
    if state.keys:
        variable = state.keys[0].variable
    else:
        variable = None
    if key is not None and variable is None:
        raise click.UsageError(
            f"{state.entry.name} reads no key from a variable, so none can be stored for it"
        )
    if key is None and variable is not None and asks:
        key = _asked_key(state, variable)
    model, options = _configured(state, server, model, asks=asks)
    if asks:
        profile = profile or _asked_profile(survey)
    setup = SetupDecision(
        provider=state.entry,
        model=model,
        options=options,
        variable=variable,
        key=key,
        profile=profile,
        scope=scope,
    )
    for line in run_quietly(ctx, partial(carry_out, setup, survey, dry_run=dry_run)):
        say(one_line(f"{'would set ' if dry_run else ''}{line}", 300))
    _finish(ctx, state, has_key=key is not None, dry_run=dry_run, test=test, asks=asks)


def _given_key(variable: str | None, from_stdin: bool) -> Secret | None:
    from amplifier_sdk.secret import Secret

    if variable is None and not from_stdin:
        return None
    if variable is None:
        value = sys.stdin.readline().strip()
    else:
        value = os.environ.get(variable, "")
    if not value:
        if variable is None:
            place = "the first line of standard input"
        else:
            place = f"the environment variable {variable}"
        raise click.UsageError(f"there is no key: {place} is empty")
    return Secret(value)


def _model_of(server: LocalServer, *, asks: bool) -> str:
    if not asks or len(server.models) == 1:
        return server.models[0]
    return server.models[pick("Model", list(map(one_line, server.models)), 0)]


def _configured(
    state: ProviderState, server: LocalServer | None, model: str | None, *, asks: bool
) -> tuple[str | None, JSONObject]:
    if server is not None:
        return model or _model_of(server, asks=asks), server.options
    if not asks:
        return model, {}
    model = model or _asked_model(state)
    return model, _asked_options(state, model or state.model)


def _asked_key(state: ProviderState, variable: str) -> Secret | None:
    """Ask for the key; an empty answer leaves it as it is."""
    from amplifier_sdk.secret import Secret

    found = not state.needs_key
    if found:
        left = "Enter keeps the one that is there"
    else:
        left = "Enter leaves it for later"
    value = click.prompt(
        f"Key ({variable}; {left})",
        default="",
        hide_input=True,
        show_default=False,
        err=True,
    )
    if value.strip():
        return Secret(value.strip())
    return None


def _asked_model(state: ProviderState) -> str | None:
    """Ask for the model; an empty answer leaves it to the provider."""
    shown = one_line(state.model or "none")
    value = click.prompt(
        f"Model (Enter for the provider's: {shown})",
        default="",
        show_default=False,
        err=True,
    )
    return value.strip() or None


def _asked_options(state: ProviderState, model: str | None) -> JSONObject:
    """Ask for what else the provider has fields for; the key and the model have questions of their own.

    What a variable of the environment says, or what another answer leaves without a meaning, is not asked.
    """
    options: JSONObject = {}
    for field in () if state.info is None else state.info.config_fields:
        is_answered = (
            field.id == "default_model"
            or field.field_type == "secret"
            or (field.requires_model and model is None)
            or (field.env_var is not None and field.env_var in os.environ)
        )
        needs = field.show_when or {}
        if is_answered or any(options.get(id) != value for id, value in needs.items()):
            continue
        answer = _asked_option(field)
        if answer is not None:
            options[field.id] = answer
    return options


def _asked_option(field: ConfigField) -> str | bool | None:
    """Ask for one option; `None` leaves it as it is."""
    asked = one_line(f"{field.display_name}: {field.prompt}")
    if field.field_type == "text":
        if field.required and field.default is None:
            return str(click.prompt(asked, err=True))
        left = f"Enter leaves {one_line(field.default or 'it out')}"
        text = click.prompt(
            f"{asked} ({left})", default="", show_default=False, err=True
        )
        return text.strip() or None
    if field.field_type == "boolean":
        choices: tuple[str, ...] = ("yes", "no")
    else:
        choices = field.choices or ()
    chosen = pick(asked, ["leave it as it is", *map(one_line, choices)], 0)
    if chosen == 0:
        return None
    if field.field_type == "boolean":
        return choices[chosen - 1] == "yes"
    return choices[chosen - 1]


def _asked_profile(survey: Survey) -> str | None:
    """Ask for the profile; the first choice leaves it as it is."""
    from amplifier.app.profiles.library import ProfileLibrary

    composition = survey.composition
    names = ProfileLibrary(
        composition.dirs, composition.project, composition.collections
    ).names()
    if not names:
        return None
    chosen = pick("Profile", ["leave it as it is", *map(one_line, names)], 0)
    if chosen == 0:
        return None
    return names[chosen - 1]


def _finish(
    ctx: click.Context,
    state: ProviderState,
    *,
    has_key: bool,
    dry_run: bool,
    test: bool,
    asks: bool,
) -> None:
    """Test what was set up where that is wanted, and say what comes next."""
    if dry_run:
        notice("Nothing was changed.")
        return
    if state.needs_key and not has_key:
        notice(
            f"Its key is not there yet: amplifier config secret set {state.keys[0].variable}"
        )
        return
    if test or (
        asks
        and click.confirm("Send one tiny request to try it?", default=False, err=True)
    ):
        _test(ctx)
    notice(
        "Next: amplifier run 'Hello', or amplifier for a chat. 'amplifier doctor' says what is amiss."
    )


def _test(ctx: click.Context) -> None:
    from amplifier.app.providers.details import ask_provider
    from amplifier.app.providers.entries import find_entry, survey_providers

    survey = survey_providers(find_app_dirs())  # as it is by now
    answered = run_quietly(
        ctx, partial(ask_provider, find_entry(survey.entries), survey.composition)
    )
    cost = answered.spent["cost_usd"]
    notice(
        f"It answered within {answered.seconds:.1f} s: {one_line(answered.text, 200)}"
    )
    notice("Its cost is not known." if cost is None else f"It cost {cost} USD.")
