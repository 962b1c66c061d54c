"""Every code sample of the specifications runs, with no change but the names that it imports.

The table says how each is run: called as it stands; mounted in a session; instantiated;
completed, which is to say put into the function, class or loop that it is a part of; a
signature, of which names, parameters and fields are compared; a picture of what happens,
compared with what happens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TypeAlias

import pytest

from tests.seeds.runs import (
    contexts,
    hooks,
    injection,
    orchestrators,
    providers,
    sources,
    tools,
)
from tests.seeds.samples import Sample, samples

DIGEST: Final = "88276dccfc3763fcc149b95188b23b9e1c8767a7d1482a5c307472b49368da58"

How: TypeAlias = Literal[
    "called", "mounted", "instantiated", "completed", "signature", "picture"
]
Run: TypeAlias = Callable[[Sample], Awaitable[None]]

TABLE: Final[dict[str, dict[str, tuple[How, Run]]]] = {
    "Context & Orchestrator Specification": {
        "Message Storage Rules": ("mounted", contexts.blocks_stored),
        "Message Storage Rules (2)": ("mounted", contexts.blocks_stored),
        "Message Storage Rules (3)": ("completed", contexts.pairs),
        "Context Protocol": ("signature", contexts.older_protocol),
        "Compaction Guidelines": ("mounted", contexts.events),
        "Orchestrator Protocol": ("signature", orchestrators.older_protocol),
        "Visibility Policy (App/UI Layer)": ("called", contexts.visibility),
    },
    "Context Injection Architecture": {
        "Runtime @Mentions": ("picture", injection.runtime_mentions),
        "Context Managers": ("mounted", injection.context_managers),
        "Key Stages": ("mounted", injection.stages),
        "Key Stages (2)": ("mounted", injection.stages),
        "Key Stages (3)": ("mounted", injection.stages),
        "Key Stages (4)": ("mounted", injection.stages),
        "Key Stages (5)": ("mounted", injection.stages),
        "Key Stages (6)": ("mounted", injection.stages),
        "Capabilities": ("mounted", injection.capabilities),
        "Anthropic Messages API": ("called", injection.anthropic),
        "OpenAI/Azure Responses API": ("called", injection.openai),
        "Profile Processing": ("called", injection.profile_processing),
        "Runtime Processing": ("called", injection.runtime_processing),
        "Content Deduplication": ("instantiated", injection.deduplication),
        "Context Manager Compaction": ("completed", injection.compaction),
        "Performance Issues": ("mounted", injection.token_count),
    },
    "Module Contracts": {
        "Quick Start Pattern": ("called", tools.quick_start),
    },
    "Tool Contract": {
        "Protocol Definition": ("signature", tools.protocol),
        "ToolCall (Input)": ("signature", tools.call_model),
        "ToolResult (Output)": ("signature", tools.result_model),
        "mount() Function": ("mounted", tools.used_in_a_session),
        "Name and Description": ("mounted", tools.used_in_a_session),
        "execute() Method": ("mounted", tools.used_in_a_session),
        "Tool Schema (Optional but Recommended)": ("mounted", tools.used_in_a_session),
        "Observability": ("mounted", tools.observability),
        "Testing": ("called", tools.testing),
        "MockTool for Testing Orchestrators": ("mounted", tools.mock_tool),
    },
    "Provider Contract": {
        "Protocol Definition": ("signature", providers.protocol),
        "mount() Function": ("mounted", providers.mounted),
        "Observability": ("mounted", tools.observability),
        "Testing": ("called", providers.testing),
    },
    "Hook Contract": {
        "Protocol Definition": ("signature", hooks.protocol),
        "HookResult Actions": ("mounted", hooks.actions),
        "mount() Function": ("mounted", hooks.mounted),
        "Event Registration": ("mounted", hooks.registered),
        "Observability": ("mounted", tools.observability),
        "Testing": ("called", hooks.testing),
        "EventRecorder for Testing": ("called", hooks.recorder),
    },
    "Orchestrator Contract": {
        "Protocol Definition": ("signature", orchestrators.protocol),
        "mount() Function": ("mounted", orchestrators.mounted),
        "Event Emission": ("completed", orchestrators.emitted),
        "Hook Processing": ("completed", orchestrators.decided),
        "Context Management": ("completed", orchestrators.stored),
        "Provider Selection": ("called", orchestrators.chosen),
        "Observability": ("mounted", tools.observability),
        "Testing": ("called", orchestrators.testing),
        "ScriptedOrchestrator for Testing": ("mounted", orchestrators.scripted),
    },
    "Context Contract": {
        "Protocol Definition": ("signature", contexts.protocol),
        "Message Format": ("mounted", contexts.message_format),
        "mount() Function": ("mounted", contexts.mounted),
        "add_message()": ("instantiated", contexts.added),
        "get_messages_for_request()": ("instantiated", contexts.for_request),
        "get_messages()": ("instantiated", contexts.raw),
        "set_messages()": ("instantiated", contexts.replaced),
        "set_messages() (2)": ("mounted", contexts.file_based),
        "clear()": ("instantiated", contexts.cleared),
        "Non-Destructive Compaction (REQUIRED)": ("mounted", contexts.ephemeral),
        "Tool Pair Preservation": ("instantiated", contexts.compacted),
        "Simple Truncation": ("completed", contexts.truncated),
        "Summarization": ("completed", contexts.summarized),
        "Importance-Based": ("completed", contexts.scored),
        "Observability": ("mounted", tools.observability),
        "Testing": ("called", contexts.testing),
        "MockContextManager for Testing": ("called", contexts.mock_context),
    },
    "Module Source Protocol": {
        "ModuleSource Protocol": ("signature", sources.source),
        "ModuleSourceResolver Protocol": ("mounted", sources.resolver),
        "Module Loader API": ("instantiated", sources.loader),
        "Mounting a Custom Resolver (App-Layer)": ("called", sources.mounted),
        "ModuleNotFoundError": ("mounted", sources.not_found),
        "ModuleLoadError": ("mounted", sources.load_error),
        "Example: Custom Resolver (App-Layer)": ("mounted", sources.custom),
    },
}
"""How each sample is run, by its document's heading and its own."""

RUNS: Final = {
    f"{document} / {heading}": run
    for document, rows in TABLE.items()
    for heading, (_, run) in rows.items()
}


def test_the_samples_are_verbatim() -> None:
    """Neither a formatter nor a hand changes them: the digest is that of the specifications' own."""
    texts = "\n".join(sample.text for sample in samples().values())
    assert hashlib.sha256(texts.encode()).hexdigest() == DIGEST


def test_the_table_has_every_sample_and_no_other() -> None:
    assert sorted(RUNS) == sorted(samples())


@pytest.mark.parametrize("name", RUNS)
async def test_sample(name: str) -> None:
    await RUNS[name](samples()[name])
