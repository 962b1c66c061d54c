"""A module's configuration: the plan's mapping becomes the module's own class, strictly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

import attrs

from amplifier_sdk._reader.problems import path_text
from amplifier_sdk._reader.readers import MisfitError
from amplifier_sdk.errors import ConfigError, Problem
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["read_config"]

C = TypeVar("C")


def read_config(
    cls: type[C], config: Mapping[str, JSONValue] | None, *, subject: str
) -> C:
    """Turn a configuration into its class.

    Types are never bent: `"8080"` is no number and `1` no boolean, though an integer is fine for a float.
    Nested attrs classes and dataclasses, lists, tuples, mappings, enums, literals, paths and unions are read
    as their annotations say. A value that is of the wanted class already is taken as it is. A field annotated
    with `Secret` holds a text that is never shown; no error shows its value, or the value of a key whose
    name says that it is one.

    Args:
        cls: an attrs class or a dataclass.
        config: the mapping; `None` is an empty one.
        subject: what is configured, for the message.

    Raises:
        ConfigError: keys are unknown or missing, or values do not fit; it lists every problem with its path.
        TypeError: the configuration names a field whose annotation no configuration can fill.
    """
    try:
        if not config and _all_have_defaults(cls):
            return cls()
        return _read(cls, config or {})
    except MisfitError as misfit:
        # only a mistake needs it
        from amplifier_sdk._reader.confidential import without_secrets

        shown, withheld = without_secrets(cls, misfit.problems)
        problems = [Problem(path_text(path), message) for path, message in shown]
        raise ConfigError(problems, subject=subject) from (
            None if withheld else misfit.__cause__
        )


def _read(cls: type[C], config: Mapping[str, JSONValue]) -> C:
    # most modules are mounted without a configuration
    from amplifier_sdk._reader.loaders import loader_of

    return cast("C", loader_of(cls)(config))


def _all_have_defaults(cls: type) -> bool:
    """Tell whether the class can be made of nothing, without looking at any annotation."""
    if attrs.has(cls):
        return all(
            field.default is not attrs.NOTHING
            for field in attrs.fields(cls)
            if field.init
        )
    from dataclasses import fields  # whoever has a dataclass has it imported

    # both `MISSING`
    return not any(
        field.default is field.default_factory for field in fields(cls) if field.init
    )
