"""What Azure's content filters say, in answers and in errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from amplifier_kit.open_data import as_object
from amplifier_kit.vendors.responses import ResponsesReader
from amplifier_sdk.chat import ChatResponse
from amplifier_sdk.jsontypes import JSONObject, JSONValue

__all__ = ["CONTENT_FILTERS", "FilteredReader", "filtered_categories"]

CONTENT_FILTERS: Final = "azure:content_filters"
"""The key of an answer's metadata with what the filters found in the prompt and in the answer."""


@attrs.define(eq=False)
class FilteredReader(ResponsesReader):
    """Reads one response with what Azure's filters say of it."""

    def finish(self) -> ChatResponse:
        """Return the whole answer, with the filters' results in its metadata.

        Raises:
            StreamError: the stream ended before the response did.
        """
        answer = super().finish()
        found = self.response.get("content_filters")
        if not isinstance(found, Sequence) or isinstance(found, str) or not found:
            return answer
        return attrs.evolve(
            answer, metadata={**(answer.metadata or {}), CONTENT_FILTERS: found}
        )


def filtered_categories(problem: JSONObject) -> str:
    """Return the categories that a filter refused, such as `hate (medium)`, as one text; empty when it names none."""
    inner = as_object(problem.get("innererror"))
    return ", ".join(_refused(as_object(inner.get("content_filter_result"))))


def _refused(results: Mapping[str, JSONValue]) -> Iterator[str]:
    for category, result in results.items():
        if isinstance(result, Mapping) and result.get("filtered") is True:
            severity = result.get("severity")
            yield f"{category} ({severity})" if isinstance(severity, str) else category
