"""The demonstration of the read-me, with the embedded model: right each time, and silent but for what helps."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from amplifier.testing import create_test_session
from amplifier_module_context_simple import SimpleContext
from amplifier_module_loop_basic import BasicLoop
from amplifier_module_provider_local.config import LocalConfig
from amplifier_module_provider_local.provider import LocalProvider
from amplifier_module_tool_filesystem import Filesystem
from amplifier_sdk import Coordinator
from amplifier_sdk.jsontypes import JSONValue
from tests.cli.programs import run
from tests.sample import size

pytestmark = [pytest.mark.model, pytest.mark.process, pytest.mark.timeout(300)]

ROOT: Final = Path(__file__).parents[2]
TIMES: Final = size(3, 20)


def question() -> str:
    """Return what the read-me's first command asks."""
    page = (ROOT / "README.md").read_text("utf-8")
    command = page.split("<!-- run-command -->")[1].split("```")[1].strip()
    return shlex.split(command.rpartition("amplifier run ")[2])[0]


def is_right(answer: str) -> bool:
    """Tell whether an answer says when the meeting is, and nothing of the time that the file does not."""
    times = re.findall(r"\d+:\d\d(?:\s*[AaPp]\.?[Mm])?|\d+\s*[AaPp]\.?[Mm]", answer)
    return "Friday" in answer and set(times) == {"10:00"}


@pytest.fixture(scope="module")
async def local() -> AsyncIterator[LocalProvider]:
    """One provider for all sessions, so that the model is loaded once."""
    provider = LocalProvider(LocalConfig())
    yield provider
    await provider.aclose()


@pytest.mark.parametrize("anyio_backend", ["asyncio"], scope="session")
async def test_the_demonstration_is_right_each_time(local: LocalProvider) -> None:
    async def borrowed(coordinator: Coordinator, _: Mapping[str, JSONValue]) -> None:
        await coordinator.mount("providers", local)

    answers = []
    for _ in range(TIMES):
        session = create_test_session(
            provider=borrowed,
            orchestrator=BasicLoop,
            context=SimpleContext,
            tools=[Filesystem],
        )
        session.coordinator.register_capability("session.working_dir", str(ROOT))
        async with session:
            answers.append(await session.execute(question()))

    assert [answer for answer in answers if not is_right(answer)] == []
    assert len(answers) == TIMES


def test_the_demonstration_says_what_the_model_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    ran = run("run", question(), "--no-keep", AMPLIFIER_HOME=str(tmp_path))

    assert is_right(ran.stdout)
    # On a busy machine it says that it is still waiting.
    lines = ran.stderr.splitlines()
    called, note = (line for line in lines if not line.startswith("still waiting"))
    assert called == "tool read_file examples/notes.txt"
    assert note.startswith("note: this model is small (135 million parameters)")
    assert note.endswith("'amplifier init' chooses another")
