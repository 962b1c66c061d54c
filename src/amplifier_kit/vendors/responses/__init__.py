"""The Responses API of OpenAI, which several vendors speak: requests, answers, errors, models.

A vendor's provider subclasses `ResponsesProvider` and its configuration `ResponsesConfig`.
"""

from __future__ import annotations

from amplifier_kit.vendors.responses.config import Effort, ResponsesConfig
from amplifier_kit.vendors.responses.models import ModelFacts, facts_of, is_listed
from amplifier_kit.vendors.responses.provider import (
    INCOMPLETE_CONTINUATION,
    ResponsesProvider,
)
from amplifier_kit.vendors.responses.reader import ResponsesReader
from amplifier_kit.vendors.responses.refusals import (
    ChainBrokenError,
    ReasoningRefusedError,
)

__all__ = [
    "INCOMPLETE_CONTINUATION",
    "ChainBrokenError",
    "Effort",
    "ModelFacts",
    "ReasoningRefusedError",
    "ResponsesConfig",
    "ResponsesProvider",
    "ResponsesReader",
    "facts_of",
    "is_listed",
]
