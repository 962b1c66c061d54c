"""Notebooks: the cells of a Jupyter notebook as text, and the images that their code showed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from amplifier_kit.open_data import as_object
from amplifier_sdk.content import ImageBlock
from amplifier_sdk.jsontypes import JSONValue
from amplifier_sdk.media import image_block

__all__ = ["Notebook"]

_MAX_IMAGES: Final = 10
_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


@attrs.frozen(kw_only=True)
class Notebook:
    """A notebook, ready to be shown; `omitted_images` counts those beyond what one result takes."""

    text: str
    images: tuple[ImageBlock, ...]
    omitted_images: int

    @classmethod
    def parse(cls, data: bytes, max_image_bytes: int) -> Notebook | None:
        """Read a notebook; `None` when the data are none, so that they are shown as they are.

        Args:
            data: the whole file.
            max_image_bytes: the most bytes that all images may have, as base64.
        """
        try:
            notebook: JSONValue = json.loads(data)
        except (ValueError, RecursionError):
            return None
        cells = as_object(notebook).get("cells")
        if not isinstance(cells, list) or not all(
            isinstance(cell, dict) for cell in cells
        ):
            return None
        rendering = _Rendering(max_image_bytes)
        for number, cell in enumerate(cells, 1):
            if isinstance(cell, dict):
                rendering.add_cell(number, cell)
        text = "\n".join(rendering.lines)
        # JSON can hold what no text file can.
        text = (
            text.replace("\0", "\\0")
            .encode("utf-8", "backslashreplace")
            .decode("utf-8")
        )
        return cls(
            text=text, images=tuple(rendering.images), omitted_images=rendering.omitted
        )


@attrs.define(eq=False)
class _Rendering:
    room: int
    lines: list[str] = attrs.field(factory=list, init=False)
    images: list[ImageBlock] = attrs.field(factory=list, init=False)
    omitted: int = attrs.field(default=0, init=False)

    def add_cell(self, number: int, cell: Mapping[str, JSONValue]) -> None:
        kind = cell.get("cell_type")
        self.lines.append(
            f"[cell {number}: {kind if isinstance(kind, str) else 'unknown'}]"
        )
        self.lines += _text(cell.get("source")).split("\n")
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else ():
            if isinstance(output, dict):
                self._add_output(number, output)
        self.lines.append("")

    def _add_output(self, number: int, output: Mapping[str, JSONValue]) -> None:
        shown = list(_output_texts(output))
        data = as_object(output.get("data"))
        for media_type in _IMAGES:
            image = data.get(media_type)
            if image is not None:
                shown.append(
                    self._take_image(media_type, _text(image).replace("\n", ""))
                )
        if shown:
            self.lines.append(f"[output of cell {number}]")
            for text in shown:
                self.lines += text.removesuffix("\n").split("\n")

    def _take_image(self, media_type: str, data: str) -> str:
        if len(self.images) == _MAX_IMAGES or len(data) > self.room:
            self.omitted += 1
            return f"[{media_type}, left out]"
        # A common budget: twenty plots must not fill the context of a model.
        self.room -= len(data)
        self.images.append(image_block(media_type, data))
        return f"[{media_type}, image {len(self.images)}]"


def _output_texts(output: Mapping[str, JSONValue]) -> Iterator[str]:
    """Yield what an output says: printed text, a value's plain form, an error."""
    if "text" in output:
        yield _text(output["text"])
    data = output.get("data")
    if isinstance(data, dict) and "text/plain" in data:
        yield _text(data["text/plain"])
    if output.get("output_type") == "error":
        yield f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"


def _text(value: JSONValue) -> str:
    """Join the lines that notebooks write as a list."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    if isinstance(value, str):
        return value
    return ""
