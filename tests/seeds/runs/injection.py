"""How the samples of the context injection architecture are run: in sessions, with profiles and files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import attrs
import pytest

from amplifier import AmplifierSession, ContentDeduplicator
from amplifier.testing import ScriptedProvider, create_test_session
from amplifier.testing.sessions import mounting
from amplifier_kit.vendors.responses.items import (
    instructions_of,
    items_of,
    without_instructions,
)
from amplifier_module_provider_anthropic import AnthropicConfig
from amplifier_module_provider_anthropic.requests import write_request
from amplifier_sdk import ChatRequest, Message
from tests.seeds.preamble import names
from tests.seeds.runs.contexts import tokens_of
from tests.seeds.samples import Sample, samples

PROFILE = """---
profile:
  name: dev
---

You are a development assistant. Follow @AGENTS.md and @COPY.md.
"""


@contextmanager
def project() -> Iterator[Path]:
    """Work in a folder with two files of one content, another file, and a person with a profile."""
    with (
        TemporaryDirectory() as made,
        pytest.MonkeyPatch.context() as patch,
    ):
        folder = Path(made).resolve()
        home = folder / "home"
        (home / "profiles").mkdir(parents=True)
        (home / "profiles" / "dev.md").write_text(PROFILE)
        work = folder / "work"
        work.mkdir()
        for name, text in [
            ("AGENTS", "Be kind."),
            ("COPY", "Be kind."),
            ("FILE", "It."),
        ]:
            (work / f"{name}.md").write_text(text)
            (home / "profiles" / f"{name}.md").write_text(text)
        patch.setenv("AMPLIFIER_HOME", str(home))
        patch.chdir(work)
        yield work


def a_session(provider: ScriptedProvider) -> AmplifierSession:
    return create_test_session(provider=mounting(provider))


async def runtime_mentions(sample: Sample) -> None:
    """It is a picture of what a prompt becomes; the runtime processing makes just that."""
    prompt = re.search(r'# User input: "(.*)"', sample.text)
    pictured = re.findall(r'^\[(\w+)\]\s+"(.*)"$', sample.text, re.MULTILINE)
    assert prompt is not None
    assert [role for role, _ in pictured] == ["Developer", "User"]
    provider = ScriptedProvider("It is a file.")
    with project():
        async with a_session(provider) as session:
            processing = samples()[
                "Context Injection Architecture / Runtime Processing"
            ]
            ran = await processing.run(names())
            await ran._process_runtime_mentions(session, prompt[1])
            await session.execute(prompt[1])
    (developer, shown), user = provider.last_messages
    assert (developer, user) == ("developer", ("user", prompt[1]))
    assert re.fullmatch(
        r"<context_file paths=\"@FILE.md → .*FILE.md\">\nIt\.\n</context_file>", shown
    )


async def context_managers(sample: Sample) -> None:
    """With the context that ships: it stores, retrieves a list, and compacts without loss."""
    plan = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [
            {"module": "provider-scripted", "config": {"responses": ["Hi."]}}
        ],
    }
    async with AmplifierSession(plan) as session:
        message = {"role": "user", "content": "Hello"}
        ran = await sample.run(names(session=session, message=message))
        assert ran.messages == [message]
        assert ran.messages + [message] == [message, message]  # noqa: RUF005  # the operator is what is tested
        assert json.loads(json.dumps(ran.messages)) == [message]
        assert await ran.context.get_messages() == [message]


async def stages(sample: Sample) -> None:
    """The six stages run one after the other; each is checked where it is its turn."""
    found = [
        samples()[f"Context Injection Architecture / Key Stages{number}"]
        for number in ("", " (2)", " (3)", " (4)", " (5)", " (6)")
    ]
    provider = ScriptedProvider("Done.", "Done again.")
    with project() as work:
        async with a_session(provider) as session:
            loader = names().create_profile_loader()
            scope = names(
                session=session,
                profile_loader=loader,
                profile_name="dev",
                prompt="Explain @FILE.md",
                provider=session.coordinator.providers["scripted"],
            )
            ran = scope
            reached: list[SimpleNamespace] = []
            for stage in found:
                ran = await stage.run(ran)
                reached.append(ran)
            messages = await session.coordinator.context.get_messages()
        assert reached[0].profile_file == work.parent / "home" / "profiles" / "dev.md"
        assert reached[0].markdown_body == PROFILE.partition("---\n\n")[2].strip()
    (shown,) = reached[1].context_messages
    assert "@AGENTS.md → " in shown.content
    assert "@COPY.md → " in shown.content
    assert reached[2].markdown_body.startswith(shown.content)
    assert reached[2].markdown_body.endswith(reached[0].markdown_body)
    roles = ["system", "developer", "user"]
    assert [message["role"] for message in messages] == roles
    assert messages[0]["content"] == reached[2].markdown_body
    assert [role for role, _ in provider.last_messages] == roles
    assert reached[5].response.text == "Done."


async def capabilities(sample: Sample) -> None:
    with project() as work:
        async with a_session(ScriptedProvider()) as session:
            ran = await sample.run(
                names(session=session, coordinator=session.coordinator)
            )
            assert ran.path == work / "AGENTS.md"
            offered = session.coordinator.get_capability("mention_deduplicator")
            assert isinstance(offered, ContentDeduplicator)


async def anthropic(sample: Sample) -> None:
    """The vendor is sent the instructions, roles and texts that the sample shows."""
    ran = await sample.run(names())
    ours, theirs = ran.shown
    request = read(ours)
    body = write_request(request, theirs["model"], AnthropicConfig()).body
    assert body["model"] == theirs["model"]
    assert "You are..." in json.dumps(body["system"])
    sent = body["messages"]
    assert isinstance(sent, list)
    assert len(sent) == len(theirs["messages"])
    for message, wanted in zip(sent, theirs["messages"], strict=True):
        assert isinstance(message, dict)
        assert message["role"] == wanted["role"]
        assert wanted["content"] in json.dumps(message["content"])


async def openai(sample: Sample) -> None:
    """The instructions are apart, and what files hold comes before the prompt, as the user's."""
    ran = await sample.run(names())
    ours, theirs = ran.shown
    messages = read(ours).messages
    assert instructions_of(messages) == theirs["instructions"]
    items = list(items_of(without_instructions(messages), is_stored=False))
    assert [item["role"] for item in items] == ["user", "user"]
    texts = [str(message["content"]) for message in ours[1:]]
    assert theirs["input"] == f"{texts[0]}\n\nUser: {texts[1]}"
    for item, text in zip(items, texts, strict=True):
        assert text in json.dumps(item["content"])


async def profile_processing(sample: Sample) -> None:
    ran = await sample.run(names())
    provider = ScriptedProvider("Done.")
    with project():
        async with a_session(provider) as session:
            session.coordinator.register_capability(
                "mention_deduplicator", ContentDeduplicator()
            )
            await ran._process_profile_mentions(session, "dev")
            await session.execute("go")
    (role, text), _ = provider.last_messages
    assert role == "system"
    assert text.count("Be kind.") == 1
    assert text.endswith("Follow @AGENTS.md and @COPY.md.")


async def runtime_processing(sample: Sample) -> None:
    """A file is shown once a session; a prompt without mentions adds nothing."""
    ran = await sample.run(names())
    with project():
        async with a_session(ScriptedProvider()) as session:
            session.coordinator.register_capability(
                "mention_deduplicator", ContentDeduplicator()
            )
            for prompt in ("See @FILE.md", "See @FILE.md again", "ask @reviewer"):
                await ran._process_runtime_mentions(session, prompt)
            messages = await session.coordinator.context.get_messages()
    assert [message["role"] for message in messages] == ["developer"]


async def deduplication(sample: Sample) -> None:
    """Its class and ours answer alike, whatever is added."""

    @attrs.define
    class ContextFile:
        paths: list[Path]
        content: str

    ran = await sample.run(names(ContextFile=ContextFile))
    theirs, ours = ran.ContentDeduplicator(), ContentDeduplicator()
    added = [("a", "x"), ("b", "x"), ("c", "y"), ("a", "x")]
    answers = [
        (theirs.add_file(Path(path), text), ours.add_file(Path(path), text))
        for path, text in added
    ]
    assert answers == [(True, True), (False, False), (True, True), (False, False)]
    assert [file.paths for file in theirs._content_map.values()] == [
        [Path("a"), Path("b"), Path("a")],
        [Path("c")],
    ]


async def compaction(sample: Sample) -> None:
    """The sample's own context: what it saves is what is no longer counted."""

    class Context:
        messages: list[dict[str, object]]
        token_count = 100

        def _extract_tool_pairs(
            self, messages: list[dict[str, object]]
        ) -> list[object]:
            return []

        def _count_tokens(self, messages: list[dict[str, object]]) -> int:
            return sum(map(tokens_of, messages))

    ran = await sample.run(names(Context=Context), within="class Part(Context):")
    context = ran.Part()
    system = {"role": "system", "content": "s" * 4}
    prompts = [{"role": "user", "content": "u" * 4} for _ in range(30)]
    context.messages = [system, *prompts]
    assert await context.compact() == 100 - 21
    assert context.messages == [system, *prompts[-20:]]


async def token_count(sample: Sample) -> None:
    printed: list[str] = []
    plan = {
        "session": {"orchestrator": "loop-basic", "context": "context-simple"},
        "providers": [
            {"module": "provider-scripted", "config": {"responses": ["Hi."]}}
        ],
    }
    async with AmplifierSession(plan) as session:
        await session.execute("Hello")
        context = session.coordinator.get("context")
        ran = await sample.run(names(context=context, print=printed.append))
    assert ran.token_count > 0
    assert printed == [f"Context tokens: {ran.token_count}"]


def read(messages: list[dict[str, object]]) -> ChatRequest:
    return ChatRequest(messages=[Message.from_dict(message) for message in messages])  # type: ignore[arg-type]
