"""Images, as content for the models that can see."""

from __future__ import annotations

import base64
import struct
from typing import Final

import attrs

from amplifier_sdk.content import TextBlock
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.media import image_block
from amplifier_sdk.results import ToolResult

__all__ = ["Image"]

_PNG: Final = b"\x89PNG\r\n\x1a\n"
_PNG_HEAD: Final = 24  # bytes up to behind width and height


@attrs.frozen(kw_only=True)
class Image:
    """An image that was read."""

    path: str
    media_type: str
    data: bytes

    @classmethod
    def check_size(cls, given: str, media_type: str, size: int, most: int) -> None:
        """Refuse an image that is larger than models take.

        Raises:
            ToolError: names both sizes.
        """
        if size > most:
            raise ToolError(
                f"{given!r}: the image ({media_type}) has {size} bytes, more than the {most} that are read; make it"
                " smaller first"
            )

    @property
    def bytes(self) -> int:
        """The size of the file."""
        return len(self.data)

    def to_result(self) -> ToolResult:
        """Write the image as the tool's result: what is known of it as output, the image itself as content."""
        output: JSONObject = {
            "file_path": self.path,
            "media_type": self.media_type,
            "bytes": self.bytes,
        }
        if self.data.startswith(_PNG) and len(self.data) >= _PNG_HEAD:
            output["width"], output["height"] = struct.unpack_from(
                ">II", self.data, _PNG_HEAD - 8
            )
        data = base64.b64encode(self.data).decode("ascii")
        caption = TextBlock(text=f"{self.path} ({self.media_type}, {self.bytes} bytes)")
        return ToolResult(
            output=output, content=[caption, image_block(self.media_type, data)]
        )
