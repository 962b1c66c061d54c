"""What a session was made of, for whoever wonders later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from amplifier_kit.redaction import SinkRedactor, StrictRedactor
from amplifier_sdk.secret import withhold

if TYPE_CHECKING:
    from amplifier.app.sessions.composition import Composition
    from amplifier_sdk.jsontypes import JSONValue

__all__ = ["describe"]


def describe(composition: Composition) -> str:
    """Write down a session's profile and mount plan as Markdown, without secrets."""
    parts = ["# What this session is made of"]
    if composition.profile is not None:
        parts.append(
            "Profile: " + " -> ".join(file.name for file in composition.profile.chain)
        )
    plan = SinkRedactor(StrictRedactor()).redact(_data(withhold(composition.plan)))
    parts.append(f"```json\n{json.dumps(plan, indent=1)}\n```")
    return "\n\n".join(parts) + "\n"


def _data(plan: Mapping[str, object]) -> JSONValue:
    """Write what is no JSON data as text: a plan file may hold nothing else, and a program's own plan may."""
    data: JSONValue = json.loads(json.dumps(plan, default=str))
    return data
