"""The texts that ask a model for an answer of a type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amplifier_sdk.output_schema import OutputSchema

__all__ = ["instructions_of"]

_WANTED = """Answer with nothing but a JSON object of this JSON Schema:

{schema}"""


def instructions_of(
    text: str | None, wanted: OutputSchema[object] | None
) -> str | None:
    """Join what an agent is always told with the form of its answers; `None` where there is neither."""
    parts = [] if text is None else [text]
    if wanted is not None:
        schema = json.dumps(wanted.schema, ensure_ascii=False)
        parts.append(_WANTED.format(schema=schema))
    return "\n\n".join(parts) or None
