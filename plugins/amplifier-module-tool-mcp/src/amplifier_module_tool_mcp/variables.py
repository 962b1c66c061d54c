"""`${NAME}` and `${NAME:-default}` in what a configuration says of a server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from amplifier_module_tool_mcp.config import ServerConfig
from amplifier_sdk.secret import Secret, is_secret_name

__all__ = ["Expanded", "MissingVariableError", "expand"]

_REFERENCE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_CARRIES_SECRETS: Final = frozenset({"cookie", "proxy-authorization"})


class MissingVariableError(ValueError):
    """A variable has no value and no default."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"the variable {name} is not set; set it, or keep it with 'amplifier config secret set {name}'"
        )


@attrs.frozen(kw_only=True)
class Expanded:
    """A server's configuration with all values in their places, and the secrets among them.

    The secrets are held so that redactors know them as long as the server is used.
    """

    config: ServerConfig
    secrets: tuple[Secret, ...] = attrs.field(repr=False)


def expand(config: ServerConfig, variables: Mapping[str, str]) -> Expanded:
    """Put values in the place of references.

    Raises:
        MissingVariableError: one has none.
        ValueError: what it holds cannot be used there.
    """
    secrets: list[Secret] = []

    def text(value: str) -> str:
        def look_up(found: re.Match[str]) -> str:
            name, default = found[1], found[2]
            set_to = variables.get(name)
            # As in a shell, `:-` stands in for an empty value, too.
            if set_to or default is None:
                known = set_to
            else:
                known = default
            if known is None:
                raise MissingVariableError(name)
            if is_secret_name(name):
                secrets.append(Secret(known))
            return known

        return _REFERENCE.sub(look_up, value)

    def pairs(values: Mapping[str, str]) -> dict[str, str]:
        found = {name: text(value) for name, value in values.items()}
        secrets.extend(
            Secret(value)
            for name, value in found.items()
            if is_secret_name(name) or name.lower() in _CARRIES_SECRETS
        )
        return found

    filled = attrs.evolve(
        config,
        command=None if config.command is None else text(config.command),
        args=tuple(map(text, config.args)),
        env=pairs(config.env),
        cwd=None if config.cwd is None else text(config.cwd),
        url=None if config.url is None else text(config.url),
        headers=pairs(config.headers),
    )
    return Expanded(config=filled, secrets=tuple(secrets))
