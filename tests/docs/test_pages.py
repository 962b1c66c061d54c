"""How pages are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Block, read_page


def _page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text, "utf-8")
    return path


def test_python_blocks_are_code_and_others_are_not(tmp_path: Path) -> None:
    page = read_page(
        _page(
            tmp_path,
            "# Title\n\n```python\na = 1\n```\n\n```bash\nls\n```\n\n```text\nb\n```\n",
        )
    )

    assert page.blocks == (Block(kind="code", text="a = 1\n", line=4),)


def test_an_indented_block_loses_its_indent(tmp_path: Path) -> None:
    page = read_page(
        _page(tmp_path, "1. Item\n\n    ```python\n    if a:\n        b()\n    ```\n")
    )

    assert page.blocks == (Block(kind="code", text="if a:\n    b()\n", line=4),)


def test_a_block_with_a_reason_is_left_out(tmp_path: Path) -> None:
    page = read_page(
        _page(
            tmp_path,
            "<!-- not run: needs a key -->\n\n```python\na\n```\n\n```python\nb\n```\n",
        )
    )

    assert [block.text for block in page.blocks] == ["b\n"]


def test_a_text_block_may_state_the_output(tmp_path: Path) -> None:
    page = read_page(
        _page(
            tmp_path, "```python\nprint(1)\n```\n\n<!-- prints -->\n```text\n1\n```\n"
        )
    )

    assert [block.kind for block in page.blocks] == ["code", "output"]


def test_a_page_may_need_a_server(tmp_path: Path) -> None:
    assert read_page(_page(tmp_path, "<!-- postgresql -->\n")).needs_server
    assert not read_page(_page(tmp_path, "postgresql\n")).needs_server


def test_a_page_may_need_the_model(tmp_path: Path) -> None:
    assert read_page(_page(tmp_path, "<!-- model -->\n")).needs_model
    assert not read_page(_page(tmp_path, "the model\n")).needs_model


@pytest.mark.parametrize("remark", ["not run", "not run: ", "skip"])
def test_a_remark_without_a_reason_is_an_error(tmp_path: Path, remark: str) -> None:
    path = _page(tmp_path, f"<!-- {remark} -->\n```python\na\n```\n")

    with pytest.raises(ValueError, match=r"page\.md:2: .*not run: REASON"):
        read_page(path)


def test_an_open_fence_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"page\.md:1: .* never closed"):
        read_page(_page(tmp_path, "```python\na\n"))
