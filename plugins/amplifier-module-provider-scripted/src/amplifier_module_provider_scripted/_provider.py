"""The module: the kit's scripted provider, with its script in the configuration."""

from __future__ import annotations

import attrs

from amplifier_kit import scripted
from amplifier_module_provider_scripted._script import read_script
from amplifier_sdk import provider
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.values import Value

__all__ = ["ScriptedConfig", "ScriptedProvider"]


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ScriptedConfig(Value):
    """The provider's settings.

    Args:
        responses: a list of answers (texts, or mappings as in `ScriptedResponse`), or the path of a JSON or
            JSON Lines file with one.
        repeat: start the script again at its end, instead of failing.
        by_history: choose the answer by how many answers the request shows, so that another process which continues
            a turn continues the script.
        name: the provider's name, to distinguish several.
        context_window: tokens it claims to take.
        max_output_tokens: tokens it claims to write.
    """

    responses: JSONValue
    repeat: bool = False
    by_history: bool = False
    name: str = "scripted"
    context_window: int = 200_000
    max_output_tokens: int = 8_000


@provider
class ScriptedProvider(scripted.ScriptedProvider):
    """Answers from the configured script and keeps the requests it saw in `requests`."""

    def __init__(self, config: ScriptedConfig) -> None:
        super().__init__(
            *(
                response.build()
                for response in read_script(config.responses, subject="script")
            ),
            name=config.name,
            repeat=config.repeat,
            by_history=config.by_history,
            context_window=config.context_window,
            max_output_tokens=config.max_output_tokens,
        )
