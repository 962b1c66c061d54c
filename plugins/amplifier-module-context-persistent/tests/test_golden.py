"""Files that earlier versions wrote are read for ever, and go on being written."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Final

import pytest

from amplifier import ModuleCoordinator
from amplifier_module_context_persistent import PersistentContext, mount
from amplifier_sdk import MessageDict
from amplifier_sdk.history import diagnose

GOLDEN: Final = Path(__file__).parent / "golden"


async def opened(path: Path) -> PersistentContext:
    return await mount(
        ModuleCoordinator(session_id="one"), {"transcript_path": str(path)}
    )


@pytest.mark.parametrize(
    "path", sorted(GOLDEN.glob("*.jsonl")), ids=lambda path: path.stem
)
async def test_a_file_of_an_earlier_version_is_whole_and_goes_on(
    path: Path, tmp_path: Path
) -> None:
    copy = Path(shutil.copy(path, tmp_path))
    message: MessageDict = {"role": "user", "content": "And now?"}

    context = await opened(copy)
    before = list(await context.get_messages())
    await context.add_message(message)
    await context.aclose()

    assert context.file.damage == ()
    assert copy.read_bytes().startswith(path.read_bytes())
    context = await opened(copy)
    assert list(map(repr, await context.get_messages())) == list(
        map(repr, [*before, message])
    )
    await context.aclose()


async def test_messages_of_the_first_version_are_what_they_were(tmp_path: Path) -> None:
    context = await opened(Path(shutil.copy(GOLDEN / "messages-1.jsonl", tmp_path)))
    messages = list(await context.get_messages())
    await context.aclose()

    assert len(messages) == 28
    by_content = {str(message["content"]): message for message in messages}
    assert by_content["Hi."] == {
        "role": "assistant",
        "content": "Hi.",
        "id": "msg_1",
        "vendor": {"cache": {"ttl": 5}},
        "refusal": None,
    }
    assert "broken \ud83d text" in by_content
    odd = by_content["odd numbers"]
    assert str(odd["n"]) == str([math.nan, math.inf, -math.inf])
    assert odd["halves"] == "\ud83d" + "\ude00"
    assert odd["$log"] == {"$log": 1}


async def test_epochs_of_the_first_version_are_what_they_were(tmp_path: Path) -> None:
    context = await opened(Path(shutil.copy(GOLDEN / "epochs-1.jsonl", tmp_path)))
    messages = list(await context.get_messages())
    await context.aclose()

    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert diagnose(messages) == ()
