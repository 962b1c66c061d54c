"""The module's configuration: what OpenAI has beside the API that others speak too."""

from __future__ import annotations

import attrs

from amplifier_kit.vendors.responses import ResponsesConfig

__all__ = ["OpenAIConfig"]


@attrs.frozen(kw_only=True)
class OpenAIConfig(ResponsesConfig):
    """What `config` of the plan may hold beside what the API has.

    Args:
        organization: the organisation that is billed; default `OPENAI_ORG_ID`, else the key's.
        project: the project that is billed; default `OPENAI_PROJECT_ID`, else the key's.
        filtered: whether `list_models` leaves out models that are not for conversations; default at OpenAI's own
            address alone, where their names are known.
    """

    organization: str | None = None
    project: str | None = None
    filtered: bool | None = None
