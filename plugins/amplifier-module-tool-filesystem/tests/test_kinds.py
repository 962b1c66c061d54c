"""`read_file` of images and notebooks: content blocks that models take."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk.content import (
    DocumentBlock,
    ImageBlock,
    TextBlock,
    block_from_dict,
    block_to_dict,
)
from amplifier_sdk.errors import ToolError
from amplifier_sdk.jsontypes import JSONObject, JSONValue
from amplifier_sdk.results import ToolResult

Mount = Callable[[Mapping[str, JSONValue]], Filesystem]

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + bytes(20)
KINDS = {
    "image/png": PNG,
    "image/jpeg": b"\xff\xd8\xff\xe0" + bytes(20),
    "image/gif": b"GIF89a" + bytes(20),
    "image/webp": b"RIFF\0\0\0\0WEBPVP8 " + bytes(20),
}


async def read(files: Filesystem, path: str) -> tuple[JSONObject, tuple[object, ...]]:
    """Read something that has content blocks: its output and the blocks."""
    result = await files.read_file(path)
    assert isinstance(result, ToolResult)
    assert isinstance(result.output, dict)
    return result.output, result.content or ()


async def page(files: Filesystem, path: str, *, raw: bool = False) -> JSONObject:
    result = await files.read_file(path, raw=raw)
    assert isinstance(result, dict)
    return result


def notebook(*cells: JSONValue) -> str:
    return json.dumps(
        {"cells": [*cells], "nbformat": 4, "nbformat_minor": 5, "metadata": {}}
    )


@pytest.mark.parametrize("media_type", KINDS)
async def test_an_image_is_a_block_whatever_its_name(
    files: Filesystem,
    root: Path,
    media_type: str,
    events: list[tuple[str, object, object]],
) -> None:
    data = KINDS[media_type]
    (root / "picture.dat").write_bytes(data)

    output, blocks = await read(files, "picture.dat")

    size = {"width": 640, "height": 480} if media_type == "image/png" else {}
    path = str(root / "picture.dat")
    assert output == {
        "file_path": path,
        "media_type": media_type,
        "bytes": len(data),
        **size,
    }
    image = ImageBlock(
        source={
            "type": "base64",
            "media_type": media_type,
            "data": base64.b64encode(data).decode(),
        }
    )
    assert blocks == (
        TextBlock(text=f"{path} ({media_type}, {len(data)} bytes)"),
        image,
    )
    assert block_from_dict(block_to_dict(image)) == image
    assert events == [("artifact:read", path, len(data))]


async def test_an_image_has_a_largest_size(mount: Mount, root: Path) -> None:
    (root / "a.png").write_bytes(PNG)

    await read(mount({"max_image_bytes": len(PNG)}), "a.png")
    with pytest.raises(
        ToolError,
        match=r"'a\.png': the image \(image/png\) has 44 bytes, more than the 43",
    ):
        await mount({"max_image_bytes": len(PNG) - 1}).read_file("a.png")


async def test_a_pdf_is_a_block_with_its_name(files: Filesystem, root: Path) -> None:
    data = b"%PDF-1.7\n" + bytes(range(256))
    (root / "a.pdf").write_bytes(data)

    output, blocks = await read(files, "a.pdf")

    assert output["media_type"] == "application/pdf"
    assert blocks[1] == DocumentBlock(
        source={
            "type": "base64",
            "media_type": "application/pdf",
            "data": base64.b64encode(data).decode(),
            "name": "a.pdf",
        }
    )


async def test_an_image_that_claims_to_be_huge_is_refused(
    files: Filesystem, root: Path
) -> None:
    claim = struct.pack(">I4sII", 13, b"IHDR", 2**31, 2**31)
    (root / "a.png").write_bytes(PNG[:8] + claim)

    with pytest.raises(ToolError, match="claims to have 2147483648 x 2147483648"):
        await files.read_file("a.png")


async def test_a_cut_image_has_no_size_and_raw_reads_none(
    files: Filesystem, root: Path
) -> None:
    (root / "a.png").write_bytes(PNG[:12])

    output, _ = await read(files, "a.png")

    assert "width" not in output
    with pytest.raises(ToolError, match="binary or unknown encoding"):
        await files.read_file("a.png", raw=True)


async def test_a_notebook_is_shown_as_its_cells_and_images(
    files: Filesystem, root: Path
) -> None:
    picture = base64.b64encode(PNG).decode()
    text = notebook(
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {
            "cell_type": "code",
            "source": "plot()",
            "outputs": [
                {"output_type": "stream", "text": ["out\n"]},
                {
                    "output_type": "display_data",
                    "data": {"image/png": picture + "\n", "text/plain": "<Figure>"},
                },
                {"output_type": "error", "ename": "ValueError", "evalue": "no"},
                {"output_type": "display_data", "data": {"text/html": "<b>"}},
                "odd",
            ],
        },
        {"source": 5},
    )
    (root / "a.ipynb").write_text(text)

    output, blocks = await read(files, "a.ipynb")

    lines = [line.split("\t")[1] for line in str(output["content"]).split("\n")]
    assert lines == [
        "[cell 1: markdown]", "# Title", "text", "",
        "[cell 2: code]", "plot()",
        "[output of cell 2]", "out",
        "[output of cell 2]", "<Figure>", "[image/png, image 1]",
        "[output of cell 2]", "ValueError: no", "",
        "[cell 3: unknown]", "",
    ]  # fmt: skip
    assert output["notebook"] is True
    assert blocks[0] == TextBlock(text=str(output["content"]))
    assert blocks[1:] == (
        ImageBlock(
            source={"type": "base64", "media_type": "image/png", "data": picture}
        ),
    )
    assert text in str((await page(files, "a.ipynb", raw=True))["content"])


async def test_images_beyond_what_a_result_takes_are_counted(
    mount: Mount, root: Path
) -> None:
    picture: JSONValue = {"data": {"image/png": "QUJD"}}
    outputs: JSONValue = {"cell_type": "code", "outputs": [picture] * 12}
    (root / "a.ipynb").write_text(notebook(outputs))

    output, blocks = await read(mount({}), "a.ipynb")
    assert (output["omitted_images"], len(blocks)) == (2, 11)

    none = await page(mount({"max_image_bytes": 3}), "a.ipynb")
    assert none["omitted_images"] == 12


@pytest.mark.parametrize(
    "text", ["no json", "[]", '{"cells": 3}', '{"cells": [1]}', "[" * 100_000]
)
async def test_what_is_no_notebook_is_shown_as_it_is(
    files: Filesystem, root: Path, text: str
) -> None:
    (root / "a.ipynb").write_text(text)

    shown = await page(files, "a.ipynb")

    assert str(shown["content"]).startswith(f"     1\t{text[:100]}")
    assert "notebook" not in shown


async def test_a_notebook_that_holds_what_no_text_can_is_readable(
    mount: Mount, root: Path
) -> None:
    (root / "a.ipynb").write_text(
        notebook({"cell_type": "code", "source": "a\0b\ud800"})
    )

    assert r"a\0b\ud800" in str((await page(mount({}), "a.ipynb"))["content"])
    assert "notebook" not in await page(mount({"max_file_bytes": 10}), "a.ipynb")
