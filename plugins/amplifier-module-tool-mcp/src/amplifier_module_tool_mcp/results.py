"""What a server answered, as the result of a tool: marked as coming from elsewhere, and of bounded size."""

from __future__ import annotations

import binascii
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from amplifier_kit.trust.untrusted import UNTRUSTED, mark_untrusted, without_unseen
from amplifier_sdk.content import ContentBlock, DocumentBlock, TextBlock
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.media import (
    MAX_IMAGE_CHARACTERS,
    MEDIA_HEAD,
    image_block,
    media_type,
)
from amplifier_sdk.results import ToolResult

if TYPE_CHECKING:
    from mcp_types import (  # takes most of a second to import
        BlobResourceContents,
        CallToolResult,
        TextResourceContents,
    )
    from mcp_types import ContentBlock as Part

__all__ = [
    "NoAnswer",
    "ResultCollector",
    "add_parts",
    "one_line",
    "read_contents",
    "read_result",
    "words_of",
]

_PDF: Final = "application/pdf"
_MAX_IMAGES: Final = 10
_LONGEST_LINE: Final = 300
_MAX_PROBLEMS: Final = 20


@attrs.define(eq=False)
class ResultCollector:
    """Collects what a server sent: texts, images, documents, and a line for each thing that is not shown.

    Args:
        source: who said it, for the mark.
        max_chars: the most text.
    """

    source: str
    max_chars: int
    _texts: list[str] = attrs.field(factory=list)
    _images: list[ContentBlock] = attrs.field(factory=list)

    def add_text(self, text: str) -> None:
        """Take a text."""
        self._texts.append(text)

    def add_media(self, data: str, declared: str) -> None:
        """Take an image or a PDF in base64; one that models do not accept becomes a line of text."""
        kind = _shown_kind(data)
        what = "document" if _PDF in (kind, declared) else "image"
        if kind is None:
            self._texts.append(f"[{one_line(declared)}: no {what} that can be shown]")
        elif len(data) > MAX_IMAGE_CHARACTERS or len(self._images) >= _MAX_IMAGES:
            article = "an" if what == "image" else "a"
            self._texts.append(
                f"[{article} {what} of {_size(data)} bytes ({kind}): too large, or one too many, to be shown]"
            )
        elif kind == _PDF:
            source: JSONObject = {"type": "base64", "media_type": kind, "data": data}
            self._images.append(DocumentBlock(source=source))
        else:
            self._images.append(image_block(kind, data))

    def add_unshown(self, kind: str, data: str) -> None:
        """Tell of data that no model is shown."""
        self._texts.append(f"[{one_line(kind)}, {_size(data)} bytes: not shown]")

    @property
    def text(self) -> str:
        """All text between its marks; of a long one the head and the tail, with its true length."""
        text = "\n\n".join(self._texts)
        # The head and the tail: logs and failures end with what matters.
        if len(text) > self.max_chars:
            half = self.max_chars // 2
            left_out = len(text) - 2 * half
            text = f"{text[:half]}\n[... {left_out} of {len(text)} characters are left out here ...]\n{text[-half:]}"
        return mark_untrusted(text, self.source)

    def to_result(self, *, is_error: bool = False) -> ToolResult:
        """Make the tool's result."""
        if is_error:
            return ToolResult.failure(
                f"the server reports a failure:\n{self.text}", trust=UNTRUSTED
            )
        output: JSONObject = {"trust": UNTRUSTED, "content": self.text}
        if not self._images:
            return ToolResult(output=output)
        content: Sequence[ContentBlock] = [TextBlock(text=self.text), *self._images]
        return ToolResult(
            output={**output, "images": len(self._images)}, content=content
        )


def read_result(result: CallToolResult, source: str, max_chars: int) -> ToolResult:
    """Make a tool's result of what a server answered to a call."""
    reading = ResultCollector(source, max_chars)
    add_parts(reading, result.content)
    structured: JSONValue = result.structured_content
    # Said twice, it would cost the context twice.
    if structured is not None and not _is_reported(structured, result.content):
        reading.add_text(json.dumps(structured, ensure_ascii=False))
    return reading.to_result(is_error=result.is_error)


def read_contents(
    contents: Iterable[TextResourceContents | BlobResourceContents],
    source: str,
    max_chars: int,
) -> ToolResult:
    """Make a tool's result of a resource."""
    reading = ResultCollector(source, max_chars)
    for part in contents:
        _add_resource(reading, part)
    return reading.to_result()


def add_parts(reading: ResultCollector, parts: Iterable[Part]) -> None:
    """Take the parts of an answer, each in its way."""
    for part in parts:
        match part.type:
            case "text":
                reading.add_text(part.text)
            case "image":
                reading.add_media(part.data, part.mime_type)
            case "audio":
                reading.add_unshown(part.mime_type, part.data)
            case "resource_link":
                reading.add_text(
                    f"[resource {one_line(part.name)}: {one_line(part.uri)}]"
                )
            case "resource":
                _add_resource(reading, part.resource)


def one_line(text: str) -> str:
    """Return what a server says in one line of a bounded length, without what nobody sees."""
    return " ".join(without_unseen(text).split())[:_LONGEST_LINE]


def words_of(error: BaseException) -> str:
    """Say what went wrong; of several failures the first counts."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    # of what is not the protocol's, each with what was there
    problems = getattr(error, "error_count", int)()
    if problems > _MAX_PROBLEMS:
        return f"{type(error).__name__}: {problems} validation errors"
    if str(error):
        return f"{type(error).__name__}: {error}"
    return type(error).__name__


def _add_resource(
    reading: ResultCollector, part: TextResourceContents | BlobResourceContents
) -> None:
    text, data = getattr(part, "text", None), getattr(part, "blob", "")
    kind = part.mime_type or "application/octet-stream"
    if isinstance(text, str):
        reading.add_text(f"{one_line(part.uri)}:\n{text}")
    elif kind.startswith("image/") or _shown_kind(data) == _PDF:
        reading.add_media(data, kind)
    else:
        reading.add_unshown(f"{kind} of {part.uri}", data)


def _is_reported(structured: JSONValue, parts: Sequence[Part]) -> bool:
    """Tell whether a text says the same as the structure, as the protocol recommends to servers."""
    for part in parts:
        if part.type == "text":
            try:
                if json.loads(part.text) == structured:
                    return True
            except (ValueError, RecursionError):
                continue
    return False


def _shown_kind(data: str) -> str | None:
    """Tell the true kind of an image or a PDF; `None` for what is none that models take."""
    try:
        head = binascii.a2b_base64(data[: 2 * MEDIA_HEAD], strict_mode=False)
        # Checked as a whole only where it may be shown: vendors refuse a request with
        # damaged base64.
        if len(data) <= MAX_IMAGE_CHARACTERS:
            binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        return None
    found = media_type(head)
    if found is not None and (found.startswith("image/") or found == _PDF):
        return found
    return None


def _size(data: str) -> int:
    return len(data) * 3 // 4


@attrs.frozen(kw_only=True)
class NoAnswer:
    """The `data` of an error that a connection makes itself; no server can send one, since it sends JSON.

    Args:
        may_have_run: whether the server may have done what it was asked.
        ended_session: whether the server no longer knows the session.
    """

    may_have_run: bool
    ended_session: bool = False
