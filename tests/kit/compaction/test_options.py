"""Each setting of a compacting context changes what it does."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import SimpleNamespace

import anyio
import pytest

from amplifier.testing import VirtualClock
from amplifier_kit.compaction import CompactionOptions
from amplifier_kit.compaction.strategies import by_importance
from amplifier_kit.scripted import ScriptedProvider, answer
from amplifier_sdk import ConfigError, JSONValue, MessageDict, ProviderInfo, Usage
from amplifier_sdk.configuration import read_config
from amplifier_sdk.events import PROVIDER_RESPONSE, SESSION_START
from tests.kit.compaction.conversations import (
    TURN_TOKENS,
    Large,
    Memory,
    Window,
    made,
    step,
    turn,
    turns,
)
from tests.timing import takes_at_most

LONG: MessageDict = {"role": "user", "content": "go"}


async def test_max_tokens_is_the_budget_without_a_window() -> None:
    memory = made(turns(4), max_tokens=2 * TURN_TOKENS)

    await memory.view()

    assert memory.figures()["budget"] == 2 * TURN_TOKENS


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"compact_threshold": 1.0}, 8),
        ({"compact_threshold": 0.9}, 4),
        ({"compact_threshold": 0.9, "compaction_threshold": 1.0}, 8),
        ({"compact_threshold": 0.9, "target_usage": 0.75}, 6),
        ({"compact_threshold": 0.5, "target_usage": 1.0}, 4),
    ],
    ids=["at", "below", "other name", "target", "target above"],
)
async def test_the_threshold_says_when_and_the_target_how_far(
    settings: Mapping[str, JSONValue], shown: int
) -> None:
    memory = made([LONG, *turns(4)], **settings)

    view = await memory.view(850)

    assert len(view) == 1 + shown


@pytest.mark.parametrize(
    ("fraction", "budget"), [(0.5, 10_000 - 500 - 1_250), (0, 8_750), (1, 7_750)]
)
async def test_answers_reserve_and_margin_are_kept_free_of_window(
    fraction: float, budget: int
) -> None:
    memory = made(turns(60), output_reserve_fraction=fraction)

    await memory.view(provider=Window(context_window=10_000, max_output_tokens=1_000))

    assert memory.figures()["budget"] == budget


@pytest.mark.parametrize(("recent", "level"), [(0.3, 7), (0.7, 9)])
async def test_the_protected_part_is_left_out_last(recent: float, level: int) -> None:
    memory = made(turns(10), protected_recent=recent)

    await memory.view(10 * TURN_TOKENS)

    assert memory.figures()["strategy_level"] == level
    assert memory.figures()["protected_recent"] == recent


@pytest.mark.parametrize(("protected", "shortened"), [(0, 2), (4, 2), (10, 0)])
async def test_the_newest_tool_results_are_not_shortened(
    protected: int, shortened: int
) -> None:
    memory = made(
        [LONG, *(m for n in range(10) for m in step(n))],
        protected_tool_results=protected,
        target_usage=0.9,
    )

    await memory.view(4_200)

    assert memory.figures()["protected_tool_results"] == protected
    assert memory.figures()["messages_truncated"] == shortened


@pytest.mark.parametrize("pinned", [None, ["look"]], ids=["none", "look"])
async def test_a_pinned_tools_results_stay_whole(pinned: JSONValue) -> None:
    memory = made([LONG, *(m for n in range(10) for m in step(n))], pinned_tools=pinned)

    view = await memory.view(1_000)

    assert (len(view) == 21) == (pinned is not None)
    assert bool(memory.warnings) == (pinned is not None)


@pytest.mark.parametrize("characters", [100, 400])
async def test_a_shortened_result_has_so_many_characters(characters: int) -> None:
    memory = made(
        [LONG, *step(1), *step(2)],
        truncate_chars=characters,
        protected_tool_results=1,
        target_usage=0.9,
    )

    view = await memory.view(880)

    text = str(view[2]["content"])
    assert text.startswith("word ")
    assert f"[{2_000 - characters:,} characters of message 2 are not shown]" in text
    assert len(text) == characters + len(
        f"\n[{2_000 - characters:,} characters of message 2 are not shown]\n"
    )


@pytest.mark.parametrize("most", [1_000, 2_000])
async def test_no_larger_result_is_ever_shown_whole(most: int) -> None:
    memory = made([LONG, *step(1)], max_tool_result_bytes=most)

    view = await memory.view()

    assert (view[2] == step(1)[1]) == (most == 2_000)
    assert await memory.context.get_messages() == [LONG, *step(1)]


@pytest.mark.parametrize(
    ("strategy", "survivor"), [("progressive", 4), ("importance", 1)]
)
async def test_the_strategy_chooses_what_stays(strategy: str, survivor: int) -> None:
    history = turns(8)
    history[3] = {
        "role": "assistant",
        "content": f"{'word ' * 90} decided: never use app/main.py again, error seen",
    }

    memory = made([LONG, *history], strategy=strategy, target_usage=0.85)
    view = await memory.view(5 * TURN_TOKENS)

    assert [number for number in range(8) if turn(number)[0] in view] == [
        survivor,
        5,
        6,
        7,
    ]
    assert {
        name
        for name, data in memory.recorder.events
        if data.get("strategy") == strategy
    } == {
        "context:pre_compact",
        "context:post_compact",
    }


@pytest.mark.figures
@pytest.mark.parametrize("part", ["a", "-", "é", "a-", "a/"])
def test_long_text_is_weighed_in_no_more_time_than_length_takes(
    part: str,
) -> None:
    messages: list[MessageDict] = [
        {"role": "user", "content": "go"},
        *step(1, part * 100_000),
    ]

    assert takes_at_most(2, lambda: by_importance(messages, [[0], [1, 2]]))


async def report(memory: Memory, tokens: int) -> None:
    """Let a provider report what the last request took."""
    usage = Usage(input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1)
    await memory.coordinator.hooks.emit(
        PROVIDER_RESPONSE, {"provider": "window", "usage": usage}
    )


@pytest.mark.parametrize(("meter", "shown"), [("estimate", 8), ("actual", 2)])
async def test_what_a_provider_reports_corrects_the_actual_meter(
    meter: str, shown: int
) -> None:
    memory = made(turns(4), token_meter=meter)

    await memory.view(5 * TURN_TOKENS, Window())
    await report(memory, 4 * TURN_TOKENS * 2)
    view = await memory.view(5 * TURN_TOKENS, Window())

    assert len(view) == shown


async def test_a_report_teaches_once_and_only_of_a_request() -> None:
    memory = made(turns(4))

    await memory.view(5 * TURN_TOKENS)
    await memory.view(5 * TURN_TOKENS, Window())
    await memory.coordinator.hooks.emit(
        PROVIDER_RESPONSE, {"provider": "window", "usage": None}
    )
    for tokens in (TURN_TOKENS, 999_999):
        await report(memory, tokens)

    assert len(await memory.view(5 * TURN_TOKENS, Window())) == 8


async def test_reports_are_averaged_and_kept_within_reason() -> None:
    memory = made(turns(4))

    for budget, tokens in ((1_600, 100 * TURN_TOKENS), (4_000, 4 * TURN_TOKENS)):
        await memory.view(budget, Window())
        await report(memory, tokens)
    await memory.view(8 * TURN_TOKENS, Window())

    # (4 + 1) / 2 times
    assert (
        memory.recorder.data("context:pre_compact")[0]["token_count"]
        == 10 * TURN_TOKENS
    )


async def test_meter_of_openais_models_counts_with_their_vocabulary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoding = SimpleNamespace(encode_ordinary=lambda text: [0] * len(text))
    monkeypatch.setitem(
        sys.modules, "bpe_openai", SimpleNamespace(get_encoding=lambda name: encoding)
    )

    memory = made([{"role": "user", "content": "twelve chars"}], token_meter="bpe")

    assert await memory.context.get_token_count() == 4 + 12


def test_a_meter_whose_package_is_missing_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "bpe_openai", None)

    with pytest.raises(
        ConfigError,
        match=r"token_meter: 'bpe' needs the package bpe-openai; install 'amplifier\[tok",
    ):
        made(token_meter="bpe")


@pytest.mark.parametrize(("margin", "shown"), [(0, 8), (0.2, 4)])
async def test_a_view_is_taken_to_be_larger_by_the_margin(
    margin: float, shown: int
) -> None:
    memory = made([LONG, *turns(4)], token_margin=margin, compact_threshold=1.0)

    assert len(await memory.view(4 * TURN_TOKENS + 5)) <= shown + 1
    assert bool(memory.recorder.data("context:compaction")) == (margin > 0)


def notice(view: list[MessageDict]) -> str | None:
    """Return the text of a view's notice."""
    texts = [
        str(message["content"])
        for message in view
        if "compaction_notice" in str(message.get("metadata"))
    ]
    assert len(texts) < 2
    return texts[0] if texts else None


@pytest.mark.parametrize("enabled", [True, False])
async def test_the_model_is_told_what_it_does_not_see(enabled: bool) -> None:
    view = await made(turns(20), compaction_notice_enabled=enabled).view(4_400)

    assert (notice(view) is not None) == enabled


@pytest.mark.parametrize(
    ("verbosity", "reported", "unrecorded"),
    [
        ("minimal", "not shown", "Left out: messages 1"),
        ("normal", "Left out: messages 1-", "Left out was asked"),
        ("verbose", "Left out was asked:\n- word", "Tools used"),
    ],
)
async def test_the_verbosity_says_how_much_it_is_told(
    verbosity: str, reported: str, unrecorded: str
) -> None:
    memory = made(
        turns(20), compaction_notice_enabled=True, compaction_notice_verbosity=verbosity
    )

    text = notice(await memory.view(4_400)) or ""

    assert reported in text
    assert unrecorded not in text


@pytest.mark.parametrize(
    ("reserve", "reported"),
    [(800, "was asked"), (90, "Left out: "), (15, "Some"), (3, None)],
)
async def test_a_notice_takes_no_more_than_its_reserve(
    reserve: int, reported: str | None
) -> None:
    memory = made(
        turns(20),
        compaction_notice_enabled=True,
        compaction_notice_token_reserve=reserve,
        compaction_notice_verbosity="verbose",
    )

    text = notice(await memory.view(4_400))

    assert text is None if reported is None else reported in (text or "")


@pytest.mark.parametrize(("level", "reported"), [(1, True), (9, False)])
async def test_a_notice_comes_from_its_level_on(level: int, reported: bool) -> None:
    memory = made(
        turns(20), compaction_notice_enabled=True, compaction_notice_min_level=level
    )

    assert (notice(await memory.view(4_400)) is not None) == reported


@pytest.mark.parametrize("mounted", [True, False])
async def test_model_can_be_given_tool_that_reads_what_is_left_out(
    mounted: bool,
) -> None:
    memory = made(turns(20), left_out_tool=mounted, compaction_notice_enabled=True)

    text = notice(await memory.view(4_400)) or ""

    assert ("read_left_out" in memory.coordinator.tools) == mounted
    assert ("the tool read_left_out" in text) == mounted


@pytest.mark.parametrize("named", [None, "other"])
async def test_the_named_provider_summarises(named: str | None) -> None:
    asked, other = (
        ScriptedProvider("By the one asked."),
        ScriptedProvider("By the other."),
    )
    memory = made(turns(20), strategy="summarize", summary_provider=named)
    await memory.coordinator.mount("providers", other, name="other")

    view = await memory.view(4_400, asked)

    assert (len(asked.requests), len(other.requests)) == ((0, 1) if named else (1, 0))
    assert any("By the other." in str(message["content"]) for message in view) == (
        named is not None
    )


@pytest.mark.parametrize(
    ("strategy", "name", "problem"),
    [
        ("summarize", "othr", "no such provider is mounted; did you mean 'other'?"),
        ("summarize", "zzz", "no such provider is mounted; mounted: other"),
        ("progressive", "other", "the strategy is 'progressive'"),
        ("summarize", "other", None),
    ],
)
async def test_summary_provider_without_effect_is_reported_at_start(
    strategy: str, name: str, problem: str | None
) -> None:
    memory = made([], strategy=strategy, summary_provider=name)
    await memory.coordinator.mount("providers", ScriptedProvider(), name="other")

    await memory.coordinator.hooks.emit(SESSION_START, {})

    if problem is None:
        assert memory.warnings == []
    else:
        (warning,) = memory.warnings
        assert f"'summary_provider' {name!r} has no effect: {problem}" in warning


@pytest.mark.parametrize(("timeout", "summarised"), [(20.0, True), (5.0, False)])
def test_a_summary_has_so_many_seconds(
    timeout: float, summarised: bool, anyio_backend_name: str
) -> None:
    async def main() -> None:
        memory = made(turns(20), strategy="summarize", summary_timeout=timeout)
        view = await memory.view(4_400, ScriptedProvider(answer(10.0, "A summary.")))

        assert anyio.current_time() == min(timeout, 10.0)
        assert (
            any("A summary." in str(message["content"]) for message in view)
            == summarised
        )
        assert bool(memory.warnings) != summarised
        assert memory.recorder.data("context:post_compact")[0]["strategy"] == (
            "summarize" if summarised else "progressive"
        )

    VirtualClock().run(main, backend=anyio_backend_name)


@pytest.mark.parametrize("tokens", [20, 200])
async def test_a_summary_is_no_longer_than_so_many_tokens(tokens: int) -> None:
    model = ScriptedProvider("summary " * 300)
    memory = made(turns(20), strategy="summarize", summary_tokens=tokens)

    view = await memory.view(4_400, model)

    (text,) = (
        str(message["content"])
        for message in view
        if "Summary of" in str(message["content"])
    )
    assert tokens - 2 <= text.count("summary ") <= tokens
    assert model.requests[0].max_output_tokens == tokens


@pytest.mark.parametrize(("limit", "warnings"), [(1, 1), (3, 1), (99, 0)])
async def test_so_many_compactions_in_vain_open_the_breaker(
    limit: int, warnings: int
) -> None:
    rules: MessageDict = {"role": "system", "content": "word " * 1_000}
    memory = made([rules], runaway_limit=limit)

    for message in turns(30):
        await memory.context.add_message(message)
        await memory.view(2_000)

    over_budget = [
        int(str(data["before_tokens"])) > 2_000
        for data in memory.recorder.data("context:compaction")
    ]
    assert over_budget == [False] * min(limit, 7) + [True] * (7 - min(limit, 7))
    assert len(memory.warnings) == warnings
    for warning in memory.warnings:
        assert f"compacted {limit} times in a row to little avail" in warning
        assert (
            "only when it is larger than its budget of 2,000 tokens (tools 0, system messages 1,004"
            in warning
        )


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        (
            {"compact_threshold": 1.5},
            "compact_threshold: is a fraction above 0 and up to 1; got 1.5",
        ),
        ({"compaction_threshold": 0}, "compaction_threshold: is a fraction above 0"),
        ({"target_usage": -1}, "target_usage: is a fraction above 0"),
        ({"target_usage": "half"}, "target_usage: expected a number"),
        (
            {"protected_recent": 1.5},
            "protected_recent: is a fraction from 0 to 1; got 1.5",
        ),
        ({"strategy": "clever"}, "strategy: expected"),
        ({"runaway_limit": 0}, "runaway_limit"),
        ({"treshold": 0.5}, "treshold: unknown"),
    ],
    ids=str,
)
def test_a_setting_that_does_not_fit_is_named(
    config: Mapping[str, JSONValue], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_config(CompactionOptions, config, subject="context")


@pytest.mark.parametrize(
    ("model", "budget"),
    [(Large.model, 20_000 - 1_000 - 2_500), (None, 8_250), (OSError("offline"), 8_250)],
    ids=["model", "none", "fails"],
)
async def test_a_models_own_window_counts_before_the_defaults(
    model: object, budget: int
) -> None:
    memory = made(turns(100))
    provider = Large(context_window=10_000, max_output_tokens=1_000)
    provider.model = model

    await memory.view(provider=provider)

    assert memory.figures()["budget"] == budget


class Speechless(Window):
    """A provider that cannot say what it is."""

    def get_info(self) -> ProviderInfo:
        raise OSError("no network")


@pytest.mark.parametrize(
    "provider",
    [Window(), Window(context_window=9), Speechless()],
    ids=["nothing", "half", "speechless"],
)
async def test_provider_that_names_no_window_gets_configured_budget(
    provider: Window,
) -> None:
    memory = made(turns(3), max_tokens=300)

    await memory.view(provider=provider)

    assert memory.figures()["budget"] == 300


async def test_a_given_budget_counts_before_the_providers() -> None:
    memory = made(turns(3))

    await memory.view(300, Window(context_window=10_000, max_output_tokens=1_000))

    assert memory.figures()["budget"] == 300
