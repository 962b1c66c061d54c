"""Images and PDF documents, as content for the models that take them."""

from __future__ import annotations

import base64
from pathlib import PurePath

import attrs

from amplifier_kit.media.headers import HEADER, pixel_size
from amplifier_kit.media.support import IMAGES, PDF
from amplifier_sdk.content import DocumentBlock, ImageBlock, TextBlock
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.media import image_block, media_type
from amplifier_sdk.results import ToolResult

__all__ = ["MediaFile", "shown_type"]


def shown_type(head: bytes) -> str | None:
    """Return the media type of a file that is shown as it is, by its first bytes; `None` for all else."""
    found = media_type(head)
    if found in IMAGES or found == PDF:
        return found
    return None


@attrs.frozen(kw_only=True)
class MediaFile:
    """An image or a document that was read."""

    path: str
    media_type: str
    data: bytes

    @classmethod
    def check_size(cls, given: str, media_type: str, size: int, most: int) -> None:
        """Refuse a file that is larger than models take.

        Raises:
            ToolError: names both sizes.
        """
        if size > most:
            what = "document" if media_type == PDF else "image"
            raise ToolError(
                f"{given!r}: the {what} ({media_type}) has {size} bytes, more than the {most} that are read; make it"
                " smaller first"
            )

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return len(self.data)

    def to_result(self) -> ToolResult:
        """Write it as the tool's result: what is known of it as output, the image or document itself as content.

        Raises:
            ToolError: an image claims to be larger than any model takes.
        """
        output: JSONObject = {
            "file_path": self.path,
            "media_type": self.media_type,
            "bytes": self.bytes,
        }
        size = pixel_size(self.data[:HEADER])
        if size is not None and size.is_huge:
            raise ToolError(
                f"{self.path!r}: the image claims to have {size}; no model takes it"
            )
        if size is not None and size.is_sane:
            output["width"], output["height"] = size.width, size.height
        caption = TextBlock(text=f"{self.path} ({self.media_type}, {self.bytes} bytes)")
        return ToolResult(output=output, content=[caption, self._block()])

    def _block(self) -> ImageBlock | DocumentBlock:
        data = base64.b64encode(self.data).decode("ascii")
        if self.media_type != PDF:
            return image_block(self.media_type, data)
        name = PurePath(self.path).name
        source: JSONObject = {"type": "base64", "media_type": PDF, "data": data}
        return DocumentBlock(source={**source, "name": name})
