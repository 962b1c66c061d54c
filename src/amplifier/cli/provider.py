"""`amplifier provider`: the providers there are, which one is asked, what they offer, whether they answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._options import scope_option
from amplifier.cli._quiet import run_quietly
from amplifier.cli._shell_completion import providers
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, one_line, say, visible

if TYPE_CHECKING:
    from amplifier.app.providers.details import ProviderState
    from amplifier.app.providers.entries import Survey
    from amplifier_sdk.chat import ModelInfo
    from amplifier_sdk.jsontypes import JSONValue

__all__ = ["key_text", "provider"]

_SECONDS = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=10.0,
    show_default=True,
    help="Seconds that one provider may take.",
)


@click.group()
def provider() -> None:
    """List providers, choose one, ask for its models, test it.

    An ID is a module's, with or without its 'provider-', or that of an instance in the settings.
    """


@provider.command("list")
@_SECONDS
@output_option
@click.pass_context
def _list(ctx: click.Context, timeout: float, output: str) -> None:
    """List the providers that are installed, the one that is asked marked, and whether their keys are there.

    Each is mounted for a moment; nothing is asked of a vendor, and no key is shown.
    """
    from amplifier.app.providers.details import inspect_providers

    look = _look()
    states = run_quietly(
        ctx,
        partial(
            inspect_providers,
            look.entries,
            look.composition,
            look.keys,
            timeout=timeout,
        ),
    )
    if output == "json":
        say_json([state.to_dict() for state in states])
        return
    if not states:
        # wrong usage alone names it
        from amplifier_kit.installation import install_command

        notice(
            f"No provider is installed; one that needs no key: {install_command('amplifier[local]')}"
        )
        return
    rows = [
        (
            _mark(state),
            one_line(state.entry.name),
            key_text(state),
            one_line(state.model or ""),
            one_line(state.problem, 120),
        )
        for state in states
    ]
    say_table(("", "PROVIDER", "KEY", "MODEL", ""), rows)


@provider.command("current")
@output_option
def _current(output: str) -> None:
    """Print the provider that new sessions ask first; exit with 1 where they have none."""
    from amplifier.app.providers.entries import find_entry

    found = find_entry(_look(strict=True).entries)
    if output == "json":
        say_json({"name": found.name, "module": found.module})
    else:
        say(one_line(found.name))


@provider.command("models")
@click.argument("id", required=False, shell_complete=providers)
@output_option
@click.pass_context
def _models(ctx: click.Context, id: str | None, output: str) -> None:
    """Ask the provider ID, or the one that new sessions ask, for its models."""
    from amplifier.app.providers.details import list_models
    from amplifier.app.providers.entries import find_entry

    look = _look(strict=id is None)
    found = run_quietly(
        ctx, partial(list_models, find_entry(look.entries, id), look.composition)
    )
    if output == "json":
        from amplifier_sdk.convert import to_json

        say_json([to_json(model) for model in found])
        return
    heads = ("MODEL", "WINDOW", "ANSWER", "USD PER MILLION", "CAPABILITIES")
    say_table(heads, map(_row, found), empty="The provider lists no model.")


@provider.command("test")
@click.argument("id", required=False, shell_complete=providers)
@click.option(
    "-m", "--model", metavar="NAME", help="The model to ask; default the provider's."
)
@output_option
@click.pass_context
def _test(ctx: click.Context, id: str | None, model: str | None, output: str) -> None:
    """Send one tiny request to the provider ID, or to the one that new sessions ask, and say what it cost."""
    from amplifier.app.providers.details import ask_provider
    from amplifier.app.providers.entries import find_entry

    look = _look(strict=id is None)
    found = find_entry(look.entries, id)
    answered = run_quietly(
        ctx, partial(ask_provider, found, look.composition, model=model)
    )
    if output == "json":
        spent: dict[str, JSONValue] = {
            name: answered.spent[name]
            for name in ("input_tokens", "output_tokens", "cost_usd")
        }
        say_json(
            {
                "name": found.name,
                "text": answered.text,
                "seconds": round(answered.seconds, 3),
                **spent,
            }
        )
        return
    cost = answered.spent["cost_usd"]
    say(visible(answered.text))
    notice(
        f"{found.name} answered within {answered.seconds:.1f} s: {answered.spent['input_tokens']} tokens in,"
        f" {answered.spent['output_tokens']} out, {'cost not known' if cost is None else f'{cost} USD'}"
    )


@provider.command("use")
@click.argument("id", shell_complete=providers)
@click.option(
    "-m", "--model", metavar="NAME", help="The model of requests that name none."
)
@click.option(
    "--config",
    "options",
    metavar="KEY=VALUE",
    multiple=True,
    help="An option of the module, its value read as YAML; may be given several times.",
)
@scope_option
@click.pass_context
def _use(
    ctx: click.Context, id: str, model: str | None, options: Sequence[str], scope: str
) -> None:
    """Use the provider ID for new sessions, instead of any other; it must mount."""
    from amplifier.app.providers.entries import find_entry
    from amplifier.app.providers.selection import use_provider

    look = _look()
    found = find_entry(look.entries, id)
    config: dict[str, JSONValue] = dict(map(_option, options))
    if model is not None:
        config["default_model"] = model
    state, path = run_quietly(
        ctx, partial(use_provider, found, look, config=config, scope=scope)
    )
    notice(
        f"New sessions ask {state.entry.name}{f' for {state.model}' if state.model else ''}, by {path}"
    )
    if state.needs_key:
        name = state.keys[0].variable
        notice(f"Its key is not there yet: amplifier config secret set {name}")


def _mark(state: ProviderState) -> str:
    if state.entry.is_asked:
        return "*"
    if state.entry.is_used:
        return "+"
    return ""


def key_text(state: ProviderState) -> str:
    """Say in a word or two whether a provider's key is there, never which it is."""
    found = next((key.source for key in state.keys if key.source is not None), None)
    if found is not None:
        return {
            "environment": "environment",
            "keyring": "keyring",
            "file": "secrets.json",
        }[found]
    if state.needs_key:
        return "missing"
    if state.problem:
        return ""
    return "not needed"


def _look(*, strict: bool = False) -> Survey:
    """Look at the providers; what prevents sessions is reported, unless `strict` makes it an error."""
    from amplifier.app.providers.entries import survey_providers

    found = survey_providers(find_app_dirs())
    if found.problem is not None and strict:
        raise found.problem
    if found.problem is not None:
        notice(f"warning: {one_line(str(found.problem), 500)}")
    return found


def _option(text: str) -> tuple[str, JSONValue]:
    from amplifier_kit.files.documents import DocumentError, parse_yaml

    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.UsageError(f"--config is given as KEY=VALUE; got {text!r}")
    try:
        return name, parse_yaml(value)
    except DocumentError as error:
        raise click.UsageError(
            f"the value of {name} cannot be read as YAML: {error.message}"
        ) from error


def _row(model: ModelInfo) -> tuple[str, ...]:
    price = model.pricing
    if price is None:
        shown = ""
    else:
        shown = f"{price.input_per_million} in, {price.output_per_million} out"
    capabilities = ", ".join(map(one_line, model.capabilities))
    return (
        one_line(model.id),
        str(model.context_window),
        str(model.max_output_tokens),
        shown,
        capabilities,
    )
