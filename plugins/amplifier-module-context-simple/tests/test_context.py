"""The context: when a view is shortened, what is announced, and how a history is replaced."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from amplifier import AmplifierSession, ModuleCoordinator, ModuleLoader
from amplifier_module_context_simple import ContextConfig, SimpleContext
from amplifier_sdk import BaseProvider, ConfigError, ContextManager, JSONValue, MessageDict, ProviderInfo
from amplifier_sdk.checks import check_instance
from amplifier_sdk.configuration import read_config
from amplifier_sdk.modules import definition_of

TURN_TOKENS = 2 * (4 + 100)  # two messages of 400 characters, each with its frame


class Window(BaseProvider):
    """A provider that says how much it takes."""

    name = "window"

    def __init__(self, **defaults: JSONValue) -> None:
        self.defaults: Mapping[str, JSONValue] = defaults

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id="window", display_name="Window", defaults=self.defaults)

    deltas = None  # type: ignore[assignment]  # never asked


@pytest.fixture
def coordinator() -> ModuleCoordinator:
    return ModuleCoordinator()


def turn(number: int) -> list[MessageDict]:
    return [
        {"role": "user", "content": f"{number:400}"},
        {"role": "assistant", "content": f"{-number:400}"},
    ]


async def filled(coordinator: ModuleCoordinator, turns: int, **settings: JSONValue) -> SimpleContext:
    definition = definition_of(SimpleContext)
    assert definition is not None
    context = await definition.mount(coordinator, settings)
    assert isinstance(context, SimpleContext)
    for number in range(turns):
        for message in turn(number):
            await context.add_message(message)
    return context


def hear(coordinator: ModuleCoordinator) -> list[tuple[str, dict[str, object]]]:
    heard: list[tuple[str, dict[str, object]]] = []
    coordinator.hooks.register("context:*", lambda event, data: heard.append((event, data)))
    return heard


async def test_it_is_a_context_manager(coordinator: ModuleCoordinator) -> None:
    context = await filled(coordinator, 0)

    assert isinstance(context, ContextManager)
    assert check_instance("context", context) == []


async def test_a_history_that_fits_is_shown_whole(coordinator: ModuleCoordinator) -> None:
    heard = hear(coordinator)
    context = await filled(coordinator, 3, compact_threshold=1.0)

    view = await context.get_messages_for_request(3 * TURN_TOKENS)

    assert view == [*turn(0), *turn(1), *turn(2)]
    assert heard == []


async def test_above_the_threshold_the_oldest_turns_are_left_out_whole(coordinator: ModuleCoordinator) -> None:
    context = await filled(coordinator, 4, compact_threshold=0.75, target_usage=0.5)

    assert await context.get_messages_for_request(4 * TURN_TOKENS) == [*turn(2), *turn(3)]
    assert await context.get_messages() == [message for number in range(4) for message in turn(number)]


async def test_the_other_name_of_the_threshold_wins(coordinator: ModuleCoordinator) -> None:
    context = await filled(coordinator, 4, compact_threshold=0.5, compaction_threshold=1.0)

    assert len(await context.get_messages_for_request(4 * TURN_TOKENS)) == 8


async def test_a_target_above_the_threshold_is_the_threshold(coordinator: ModuleCoordinator) -> None:
    context = await filled(coordinator, 4, compact_threshold=0.5, target_usage=1.0)

    assert await context.get_messages_for_request(4 * TURN_TOKENS) == [*turn(2), *turn(3)]


async def test_shortening_is_announced_with_its_figures(coordinator: ModuleCoordinator) -> None:
    heard = hear(coordinator)
    context = await filled(coordinator, 4)

    await context.get_messages_for_request(2 * TURN_TOKENS)

    (pre, before), (post, after), (summary, figures) = heard
    assert [pre, post, summary] == ["context:pre_compact", "context:post_compact", "context:compaction"]
    assert (
        before.items()
        >= {
            "message_count": 8,
            "before_messages": 8,
            "token_count": 4 * TURN_TOKENS,
            "before_tokens": 4 * TURN_TOKENS,
            "strategy": "drop_oldest",
        }.items()
    )
    assert (
        after.items()
        >= {
            "message_count": 2,
            "after_messages": 2,
            "token_count": TURN_TOKENS,
            "after_tokens": TURN_TOKENS,
            "removed_messages": 6,
            "removed_tokens": 3 * TURN_TOKENS,
            "strategy": "drop_oldest",
        }.items()
    )
    assert (
        figures.items()
        >= {
            "before_tokens": 4 * TURN_TOKENS,
            "after_tokens": TURN_TOKENS,
            "before_messages": 8,
            "after_messages": 2,
            "messages_removed": 6,
            "budget": 2 * TURN_TOKENS,
        }.items()
    )


async def test_what_cannot_be_shortened_is_shown_without_an_announcement(coordinator: ModuleCoordinator) -> None:
    heard = hear(coordinator)
    context = await filled(coordinator, 1)

    assert await context.get_messages_for_request(1) == turn(0)
    assert heard == []


async def test_a_view_is_shortened_unheard(coordinator: ModuleCoordinator) -> None:
    context = await filled(coordinator, 2)

    assert await context.get_messages_for_request(TURN_TOKENS) == turn(1)


async def test_within_the_running_turn_the_oldest_steps_are_left_out(coordinator: ModuleCoordinator) -> None:
    context = await filled(coordinator, 1)
    history: list[MessageDict] = [{"role": "user", "content": "go"}]
    for number in range(3):
        call: JSONValue = {"type": "tool_call", "id": str(number), "name": "t", "input": {}}
        history.append({"role": "assistant", "content": [call]})
        history.append({"role": "tool", "tool_call_id": str(number), "content": "x" * 400})
    await context.set_messages(history)

    assert await context.get_messages_for_request(120) == [history[0], *history[-2:]]


async def test_calls_beside_the_content_stay_with_their_results_and_count(coordinator: ModuleCoordinator) -> None:
    context = await filled(coordinator, 0)
    history: list[MessageDict] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"arguments": "x" * 400}}]},
        {"role": "user", "content": "a person interrupts"},
        {"role": "tool", "content": [{"type": "tool_result", "tool_call_id": "a", "output": "done"}]},
        {"role": "assistant", "content": "done"},
    ]
    await context.set_messages(history)

    assert await context.get_token_count() > 100
    assert await context.get_messages_for_request(1) == [history[2], history[4]]


async def test_a_result_without_its_call_goes_with_its_turn(coordinator: ModuleCoordinator) -> None:
    context = await filled(coordinator, 0)
    lost: MessageDict = {"role": "tool", "tool_call_id": "lost", "content": "x" * 400}
    await context.set_messages([*turn(0), lost, *turn(1), lost])

    assert await context.get_messages_for_request(TURN_TOKENS) == [*turn(1), lost]


async def test_the_budget_is_the_providers_window_less_its_output_and_a_margin(
    coordinator: ModuleCoordinator,
) -> None:
    heard = hear(coordinator)
    context = await filled(coordinator, 60)

    await context.get_messages_for_request(provider=Window(context_window=10_000, max_output_tokens=1_000))

    assert heard[-1][1]["budget"] == 8_000


async def test_a_small_window_keeps_a_smaller_margin(coordinator: ModuleCoordinator) -> None:
    heard = hear(coordinator)
    context = await filled(coordinator, 3)

    await context.get_messages_for_request(provider=Window(context_window=400, max_output_tokens=100))

    assert heard[-1][1]["budget"] == 250


@pytest.mark.parametrize("provider", [None, Window(), Window(context_window=9)])
async def test_without_a_window_the_configured_budget_holds(
    coordinator: ModuleCoordinator, provider: Window | None
) -> None:
    heard = hear(coordinator)
    context = await filled(coordinator, 3, max_tokens=300)

    await context.get_messages_for_request(provider=provider)

    assert heard[-1][1]["budget"] == 300


async def test_a_given_budget_counts_before_the_providers(coordinator: ModuleCoordinator) -> None:
    heard = hear(coordinator)
    context = await filled(coordinator, 3)

    await context.get_messages_for_request(300, Window(context_window=10_000, max_output_tokens=1_000))

    assert heard[-1][1]["budget"] == 300


async def test_a_resumed_history_replaces_the_old_one_and_its_views(coordinator: ModuleCoordinator) -> None:
    context = await filled(coordinator, 4, system_prompt="Be brief.")
    await context.get_messages_for_request(TURN_TOKENS)

    await context.set_messages(turn(9))

    assert await context.get_messages() == turn(9)
    assert await context.get_messages_for_request(TURN_TOKENS * 2) == turn(9)
    assert await context.get_token_count() == TURN_TOKENS


async def test_clearing_keeps_the_instructions_alone(coordinator: ModuleCoordinator) -> None:
    context = await filled(coordinator, 1, system_prompt="Be brief.")

    await context.clear()

    assert await context.get_messages() == [{"role": "system", "content": "Be brief."}]


async def test_clearing_without_instructions_keeps_nothing(coordinator: ModuleCoordinator) -> None:
    context = await filled(coordinator, 1)

    await context.clear()

    assert await context.get_messages() == []
    assert await context.get_token_count() == 0


@pytest.mark.parametrize("message", [{"content": "who?"}, {"role": 7, "content": "x"}])
async def test_a_message_without_a_role_is_refused(coordinator: ModuleCoordinator, message: MessageDict) -> None:
    context = await filled(coordinator, 0)

    with pytest.raises(ValueError, match="needs a 'role'"):
        await context.add_message(message)
    assert await context.get_messages() == []


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"compact_threshold": 1.5}, "compact_threshold: is a fraction above 0 and up to 1; got 1.5"),
        ({"compaction_threshold": 0}, "compaction_threshold: is a fraction above 0"),
        ({"target_usage": -1}, "target_usage: is a fraction above 0"),
        ({"target_usage": "half"}, "target_usage: expected a number"),
        ({"treshold": 0.5}, "treshold: unknown"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(config: Mapping[str, JSONValue], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read_config(ContextConfig, config, subject="context")


async def test_a_session_mounts_it_from_its_plan() -> None:
    plan = {
        "session": {"orchestrator": "loop", "context": "context-simple"},
        "context": {"config": {"system_prompt": "Be brief."}},
    }

    async def mount(coordinator: ModuleCoordinator, config: object) -> None:
        class Idle:
            async def execute(
                self, prompt: str, context: object, providers: object, tools: object, hooks: object
            ) -> str:
                return prompt

        await coordinator.mount("orchestrator", Idle())

    loader = ModuleLoader(modules={"loop": mount, "context-simple": SimpleContext})
    async with AmplifierSession(plan, loader) as session:
        context = session.coordinator.get("context")

        assert isinstance(context, SimpleContext)
        assert await context.get_messages() == [{"role": "system", "content": "Be brief."}]
