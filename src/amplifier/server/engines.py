"""The engines that a person can name: by a URL of a kind that an installed module knows."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

from amplifier_sdk.engines import EngineOpener, ExecutionEngine
from amplifier_sdk.errors import ConfigError

__all__ = ["open_named_engine"]

_GROUP: Final = "amplifier.engines"
_NAMESPACE: Final = "amplifier-turns"


async def open_named_engine(url: str) -> ExecutionEngine:
    """Open the engine of the turns of servers and workers; whoever opened it closes it.

    Raises:
        ConfigError: no installed module knows such an engine.
        EngineError: it cannot be opened.
    """
    scheme, separator, _ = url.partition("://")
    for point in entry_points(group=_GROUP, name=scheme):
        if separator:
            opener: EngineOpener = point.load()
            return await opener(url, namespace=_NAMESPACE)
    known = ", ".join(f"{point.name}://…" for point in entry_points(group=_GROUP))
    problem = f"no engine; known: {known or 'none'}"
    if scheme.startswith("dbos"):
        problem += ". Install amplifier-module-engine-dbos"
    # a URL may hold a password
    raise ConfigError.of(scheme, problem, subject="choice of an engine")
