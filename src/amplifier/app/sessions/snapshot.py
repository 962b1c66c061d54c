"""What a session was made of, for whoever wonders later."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from amplifier_kit.redaction import SinkRedactor, StrictRedactor
from amplifier_sdk.secret import withhold

if TYPE_CHECKING:
    from amplifier.app.sessions.composition import Composition

__all__ = ["describe"]


def describe(composition: Composition) -> str:
    """Write down a session's profile and mount plan as Markdown, without secrets."""
    parts = ["# What this session is made of"]
    if composition.profile is not None:
        parts.append(
            "Profile: " + " -> ".join(file.name for file in composition.profile.chain)
        )
    # a program's own plan may hold what is no JSON data, which becomes text
    data = json.loads(json.dumps(withhold(composition.plan), default=str))
    plan = SinkRedactor(StrictRedactor()).redact(data)
    parts.append(f"```json\n{json.dumps(plan, indent=1)}\n```")
    return "\n\n".join(parts) + "\n"
