"""`amplifier config`: settings, where each comes from, and secrets."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from amplifier.cli._app_dirs import find_app_dirs
from amplifier.cli._options import scope_option
from amplifier.cli._tables import output_option, say_json, say_table
from amplifier.cli._terminal import notice, one_line, say
from amplifier.cli.config_secrets import secret

if TYPE_CHECKING:
    from amplifier.app.settings.layers import Key
    from amplifier.app.settings.settings import Settings
    from amplifier_sdk.jsontypes import JSONValue

__all__ = ["config"]


@click.group()
def config() -> None:
    """Look at settings and change them.

    Settings stand in files: the person's own, the project's, and the person's own of the project; the latter win. A
    KEY is written as 'ui.show_tool_lines' or 'config.providers[0].module'.
    """


config.add_command(secret)


@config.command("get")
@click.argument("key")
@output_option
@click.pass_context
def _get(ctx: click.Context, key: str, output: str) -> None:
    """Print the value of KEY that holds; exit with 1 where nothing is set and there is no default."""
    place = _key(key)
    origins = _settings().explain(place)
    if not origins:
        notice(f"{key} is not set.")
        ctx.exit(1)
    value = _shown(place, origins[0].value)
    if output == "json" or not isinstance(value, str):
        say(json.dumps(value, indent=2))
    else:
        say(one_line(value, 10_000))


@config.command("explain")
@click.argument("key")
@output_option
@click.pass_context
def _explain(ctx: click.Context, key: str, output: str) -> None:
    """Show every place that sets KEY; the first one holds."""
    place, settings = _key(key), _settings()
    origins = settings.explain(place)
    if output == "json":
        say_json(
            [
                {
                    "scope": origin.scope,
                    "path": None if origin.path is None else str(origin.path),
                    "line": origin.line,
                    "value": _shown(place, origin.value),
                }
                for origin in origins
            ]
        )
    elif origins:
        rows = []
        for origin in origins:
            if origin.path is None:
                where = ""
            else:
                where = f"{origin.path}:{origin.line or 1}"
            value = one_line(json.dumps(_shown(place, origin.value)), 60)
            rows.append((origin.scope, value, one_line(where, 300)))
        say_table(("SCOPE", "VALUE", "WHERE"), rows)
    if settings.withheld is not None:
        notice(
            f"The settings of this folder do not count: {one_line(settings.withheld.reason, 300)}"
        )
    if not origins:
        notice(f"{key} is not set.")
        ctx.exit(1)


@config.command("list")
@output_option
def _list(output: str) -> None:
    """Show all settings that are set, merged."""
    from amplifier.app.profiles.compiler import flatten
    from amplifier_sdk.secret import withhold

    values = withhold(_settings().values)
    if output == "json":
        say_json(values)
        return
    for path, value in flatten(values):
        if path:
            say(
                f"{one_line(path)} = {one_line(json.dumps(value, ensure_ascii=False), 200)}"
            )


@config.command("set")
@click.argument("key")
@click.argument("value")
@scope_option
def _set(key: str, value: str, scope: str) -> None:
    """Set KEY to VALUE, which is read as YAML: 5 is a number, [a, b] a list, null takes the key away."""
    from amplifier.app.settings.changes import change
    from amplifier_kit.files.documents import DocumentError, parse_yaml

    try:
        parsed = parse_yaml(value)
    except DocumentError as error:
        raise click.UsageError(
            f"VALUE cannot be read as YAML: {error.message}"
        ) from error
    notice(f"{key} is set in {change(scope, _key(key), parsed)}")


@config.command("unset")
@click.argument("key")
@scope_option
def _unset(key: str, scope: str) -> None:
    """Take KEY out of a file."""
    from amplifier.app.settings.changes import change

    notice(f"{key} is not set any more in {change(scope, _key(key), None)}")


@config.command("path")
@scope_option
@click.pass_context
def _path(ctx: click.Context, scope: str) -> None:
    """Print where a scope's file stands; it need not exist."""
    from typing import cast

    from amplifier.app.settings.layers import Scope
    from amplifier.app.settings.settings import settings_file

    path = settings_file(cast("Scope", scope), find_app_dirs())
    if path is None:
        notice("There is no project here: this is the home folder.")
        ctx.exit(1)
    say(str(path))


@config.command("edit")
@scope_option
def _edit(scope: str) -> None:
    """Open a scope's file in $EDITOR; it is saved when it is valid."""
    from amplifier.app.settings.changes import edit

    path = edit(scope, lambda text: click.edit(text, extension=".yaml"))
    notice("Nothing was changed." if path is None else f"changed: {path}")


@config.command("validate")
def _validate() -> None:
    """Check all settings files; what is wrong is reported with file and line."""
    settings = _settings()
    settings.read()
    for layer in settings.layers:
        notice(f"sound: {layer.path}")
    if settings.withheld is not None:
        notice(
            f"not checked: the settings of this folder. {one_line(settings.withheld.reason, 300)}"
        )


def _settings() -> Settings:
    from amplifier.app.settings.settings import load_settings

    return load_settings(find_app_dirs())


def _key(text: str) -> Key:
    from amplifier.app.settings.layers import read_key

    try:
        return read_key(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _shown(key: Key, value: JSONValue) -> object:
    """Return a value without what stands under names of secrets."""
    from amplifier_sdk.secret import is_secret_name, withhold

    name = next(
        (part for part in key if isinstance(part, str) and is_secret_name(part)), ""
    )
    return withhold({name: value})[name]
