from __future__ import annotations

from contextlib import aclosing
from typing import ClassVar, Literal

import anyio
import httpx2
import pytest

from amplifier.testing import EventRecorder, TestCoordinator, VirtualClock
from amplifier.testing.transport import HttpAnswer, json_answer, sse
from amplifier_kit.vendors import Outgoing
from amplifier_sdk.chat import ChatRequest, Degradation, Usage
from amplifier_sdk.content import TextBlock, ToolCallBlock
from amplifier_sdk.errors import (
    AuthenticationError,
    ConfigError,
    ConfigurationError,
    LLMError,
    NetworkError,
)
from amplifier_sdk.events import (
    LLM_REQUEST,
    LLM_RESPONSE,
    PROVIDER_RETRY,
    PROVIDER_THROTTLE,
)
from amplifier_sdk.events import PROVIDER_TOOL_SEQUENCE_REPAIRED as REPAIRED
from amplifier_sdk.jsontypes import JSONObject
from amplifier_sdk.media import image_block
from amplifier_sdk.messages import Message
from amplifier_sdk.streaming import TextDelta
from tests.kit.vendors.parrot import (
    DONE,
    KEY,
    WORDS,
    ParrotProvider,
    ask,
    parrot,
    speaking,
)


async def test_the_request_and_the_answer_go_through_write_and_reader() -> None:
    provider, script = parrot(
        speaking(), temperature=0.5, max_tokens=9, extra_request_params={"mood": "gay"}
    )

    answer = await provider.complete(ask("hello", "you"))

    assert (answer.text, answer.finish_reason) == (WORDS, "stop")
    assert answer.usage == Usage(input_tokens=7, output_tokens=3, total_tokens=10)
    assert script.bodies == [
        {
            "model": "grey",
            "words": ["hello", "you"],
            "temperature": 0.5,
            "most": 9,
            "mood": "gay",
        }
    ]
    assert str(script.requests[0].url) == "https://parrot.example/v1/speak?loud=1"


async def test_what_the_request_says_goes_before_the_configuration() -> None:
    provider, script = parrot(
        speaking(), temperature=0.5, max_tokens=9, default_model="red"
    )
    request = ChatRequest(
        messages=ask().messages, temperature=1.0, max_output_tokens=5, model="blue"
    )

    await provider.complete(request)

    assert script.bodies == [
        {"model": "blue", "words": ["hello"], "temperature": 1.0, "most": 5}
    ]


async def test_request_has_no_more_images_than_configuration_says() -> None:
    provider, script = parrot(speaking(), speaking(), max_images=2, max_image_bytes=9)
    message = Message(
        role="user",
        content=[TextBlock(text="Look:"), *[image_block("image/png", "AAAA")] * 3],
    )

    answer = await provider.complete(ChatRequest(messages=[message], stop=["x"]))
    plain = await provider.complete(ask())

    reported = "[an image is not shown: newer ones took its place]"
    assert script.bodies[0] == {
        "model": "grey",
        "words": [f"Look:{reported}{reported}"],
    }
    assert answer.degradation == Degradation(
        requested="images; stop",
        actual="2 of them as a text that says so; none",
        reason="a request has at most 2 images and 9 bytes of them; it stops when it wants",
    )
    assert plain.degradation is None


async def test_a_refusal_of_images_says_what_to_set() -> None:
    blind = json_answer(
        {"error": {"message": "image input is not supported"}}, status=400
    )
    locked = json_answer({"error": {"message": "no such key"}}, status=401)
    provider, _ = parrot(blind, blind, locked)
    picture = Message(role="user", content=[image_block("image/png", "AAAA")])

    with pytest.raises(
        LLMError,
        match=r"image input is not supported.*; say with the provider's `media` what the model takes",
    ):
        await provider.complete(ChatRequest(messages=[picture]))
    with pytest.raises(LLMError, match="image input is not supported") as raised:
        await provider.complete(ask())
    assert "media" not in str(raised.value)
    with pytest.raises(LLMError, match="no such key") as raised:
        await provider.complete(ChatRequest(messages=[picture]))
    assert "media" not in str(raised.value)


async def test_headers_are_key_providers_and_configurations() -> None:
    provider, script = parrot(
        speaking(), extra_headers={"X-Feather": "blue", "x-more": "1"}
    )

    await provider.complete(ask())

    headers = script.requests[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers.get_list("x-feather") == ["blue"]
    assert (headers["x-more"], headers["user-agent"], headers["content-type"]) == (
        "1",
        "amplifier",
        "application/json",
    )


async def test_a_header_that_no_server_can_read_is_refused_unseen() -> None:
    provider, _ = parrot(speaking(), extra_headers={"x-odd": "gr\u00fcn-secret"})

    with pytest.raises(
        ConfigurationError, match="The header 'x-odd' has a value"
    ) as raised:
        await provider.complete(ask())

    assert "secret" not in str(raised.value)


async def test_what_cannot_be_given_is_said_in_the_answer() -> None:
    provider, _ = parrot(speaking(), speaking())
    request = ChatRequest(messages=ask().messages, stop=["."])

    answer, plain = await provider.complete(request), await provider.complete(ask())

    assert answer.degradation is not None
    assert answer.degradation.requested == "stop"
    assert plain.degradation is None


async def test_a_price_makes_a_cost_and_a_contribution() -> None:
    coordinator = TestCoordinator()
    price: JSONObject = {"input_per_million": "1", "output_per_million": "1"}
    provider, _ = parrot(
        speaking(), speaking(), coordinator=coordinator, prices={"grey": price}
    )

    answer = await provider.complete(ask())
    await provider.complete(ChatRequest(messages=ask().messages, model="unpriced"))

    assert answer.usage is not None
    assert str(answer.usage.cost_usd) == "0.00001"
    reported = await coordinator.collect_contributions("session.cost")
    assert reported == [{"provider": "parrot", "usd": "0.00001", "unpriced": 1}]


class Mute(ParrotProvider):
    """A vendor without an address and a model of its own."""

    key_variable: ClassVar[str | None] = None
    url_variable: ClassVar[str | None] = None
    public_url: ClassVar[str | None] = None
    standard_model: ClassVar[str | None] = None


def test_address_is_configurations_environments_or_public_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PARROT_URL", raising=False)
    assert parrot()[0].base_url == "https://parrot.example/v1"
    monkeypatch.setenv("PARROT_URL", "http://cage.example")
    assert parrot()[0].base_url == "http://cage.example"
    assert parrot(base_url="http://home.example")[0].base_url == "http://home.example"


def test_a_bad_address_of_the_environment_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARROT_URL", "cage")

    with pytest.raises(ConfigError, match="base_url is an address such as"):
        parrot()


def test_a_key_is_needed_where_there_is_a_variable_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARROT_KEY", "  ")
    with pytest.raises(ConfigError, match="or the environment variable PARROT_KEY"):
        parrot(api_key=None)
    monkeypatch.setenv("PARROT_KEY", " from-the-environment\n")
    key = parrot(api_key=None)[0].key
    assert key is not None
    assert key.reveal() == "from-the-environment"


def test_an_odd_key_is_refused_unseen() -> None:
    with pytest.raises(
        ConfigError, match="holds characters that no key can have"
    ) as raised:
        parrot(api_key="schl\u00fcssel")

    assert "schl" not in str(raised.value)


async def test_a_vendor_without_keys_is_asked_without_one() -> None:
    provider, script = parrot(
        speaking(),
        kind=Mute,
        api_key=None,
        base_url="http://cage.example",
        model="grey",
    )

    await provider.complete(ask())

    assert "authorization" not in script.requests[0].headers
    assert provider.get_info().credential_env_vars == ()
    assert [field.id for field in provider.config_fields()] == [
        "base_url",
        "default_model",
    ]


async def test_what_nobody_names_is_an_error_with_its_remedy() -> None:
    with pytest.raises(ConfigError, match="base_url: missing; the address of the API"):
        parrot(kind=Mute, api_key=None)
    provider, _ = parrot(kind=Mute, api_key=None, base_url="http://cage.example")
    with pytest.raises(ConfigurationError, match="No model is named") as raised:
        await provider.complete(ask())
    assert raised.value.provider == "parrot"
    assert provider.get_info().defaults == {}


def test_a_person_is_asked_for_key_address_and_model() -> None:
    info = parrot()[0].get_info()

    assert [field.id for field in info.config_fields] == [
        "api_key",
        "base_url",
        "default_model",
    ]
    assert (info.credential_env_vars, info.defaults) == (
        ("PARROT_KEY",),
        {"model": "grey"},
    )


async def test_other_paths_are_got_and_posted_with_the_same_care() -> None:
    provider, script = parrot(
        HttpAnswer(status=503),
        json_answer([1]),
        json_answer({"b": 2}),
        min_retry_delay=0,
    )

    assert await provider.get("birds?all=1") == [1]
    assert await provider.post("birds", {"name": "polly"}) == {"b": 2}
    asked = [(request.method, request.url.path) for request in script.requests]
    assert asked == [("GET", "/v1/birds"), ("GET", "/v1/birds"), ("POST", "/v1/birds")]


async def test_what_is_no_json_or_refusal_is_error_of_provider() -> None:
    provider, _ = parrot(
        HttpAnswer(parts=(b"<html>",)), HttpAnswer(status=401), max_retries=0
    )

    with pytest.raises(LLMError, match="not JSON") as raised:
        await provider.get("birds")
    with pytest.raises(AuthenticationError):
        await provider.get("birds")

    assert raised.value.provider == "parrot"


async def test_a_streamed_post_can_be_read_by_itself() -> None:
    provider, script = parrot(HttpAnswer(parts=(sse({"a": 1}, {"b": 2}),)))

    async with aclosing(provider.events(Outgoing(path="pull", body={}))) as events:
        data = [event async for event in events]

    assert len(data) == 2
    assert script.closed == [True]


async def test_an_error_names_the_provider_as_the_session_calls_it() -> None:
    coordinator = TestCoordinator()
    provider, _ = parrot(HttpAnswer(status=401), coordinator=coordinator)
    await coordinator.mount("providers", provider, name="parrot-two")

    with pytest.raises(AuthenticationError) as raised:
        await provider.complete(ask())

    assert (raised.value.provider, raised.value.model) == ("parrot-two", "grey")


def test_retries_limits_and_exchanges_are_told(anyio_backend_name: str) -> None:
    async def main() -> None:
        coordinator = TestCoordinator()
        recorder = EventRecorder.of(coordinator.hooks)
        limits = {
            "x-ratelimit-limit-tokens": "1000",
            "x-ratelimit-remaining-tokens": "50",
            "x-ratelimit-reset-tokens": "6s",
        }
        ample = {
            "x-ratelimit-limit-requests": "10",
            "x-ratelimit-remaining-requests": "9",
            "request-id": "req_1",
        }
        provider, _ = parrot(
            HttpAnswer(status=503),
            speaking(headers={**limits, **ample}),
            coordinator=coordinator,
            prices={},
        )

        await provider.complete(ask())

        names = [name for name, _ in recorder.events]
        assert names == [
            LLM_REQUEST,
            LLM_RESPONSE,
            PROVIDER_RETRY,
            LLM_REQUEST,
            PROVIDER_THROTTLE,
            LLM_RESPONSE,
        ]
        retry, throttle, response = (recorder.events[number][1] for number in (2, 4, 5))
        assert (retry["attempt"], retry["max_retries"], retry["delay"]) == (1, 5, 1.0)
        assert (
            throttle["dimension"],
            throttle["remaining"],
            throttle["reset_timestamp"],
        ) == ("tokens", 50, "6s")
        assert response["usage"] == {
            "input_tokens": 7,
            "output_tokens": 3,
            "total_tokens": 10,
        }
        assert response["vendor_request_id"] == "req_1"

    VirtualClock().run(main, backend=anyio_backend_name)


async def test_limit_without_reset_told_and_cost_written_as_text() -> None:
    coordinator = TestCoordinator()
    recorder = EventRecorder.of(coordinator.hooks)
    price: JSONObject = {"input_per_million": "1", "output_per_million": "1"}
    few = {"x-ratelimit-limit": "1000", "x-ratelimit-remaining": "1"}
    provider, _ = parrot(
        speaking(headers=few), coordinator=coordinator, prices={"grey": price}
    )

    await provider.complete(ask())

    data = dict(recorder.events)
    assert "reset_timestamp" not in data[PROVIDER_THROTTLE]
    usage = data[LLM_RESPONSE]["usage"]
    assert isinstance(usage, dict)
    assert usage["cost_usd"] == "0.00001"


async def test_a_mended_history_is_told_and_sent() -> None:
    coordinator = TestCoordinator()
    recorder = EventRecorder.of(coordinator.hooks, REPAIRED)
    provider, script = parrot(speaking(), speaking(), coordinator=coordinator)
    open_call = Message(role="assistant", content=[ToolCallBlock(id="c1", name="peck")])

    await provider.complete(
        ChatRequest(messages=[*ask().messages, open_call, *ask("again").messages])
    )

    (_, data), *others = recorder.events
    assert not others
    assert (data["provider"], data["repair_count"]) == ("parrot", 1)
    (body,) = script.bodies
    assert isinstance(body, dict)
    assert len(body["words"]) == 4


async def test_a_mended_history_that_nobody_hears_of_is_sent() -> None:
    provider, script = parrot(speaking())
    open_call = Message(role="assistant", content=[ToolCallBlock(id="c1", name="peck")])

    await provider.complete(ChatRequest(messages=[*ask().messages, open_call]))

    assert len(script.bodies) == 1


def test_further_requests_wait_for_a_free_slot(anyio_backend_name: str) -> None:
    async def main() -> None:
        provider, script = parrot(speaking(7.0), speaking(), max_concurrent_requests=1)
        signs: list[float] = []

        async def second() -> None:
            async with provider.stream(ask()) as items:
                async for item in items:
                    if isinstance(item, TextDelta) and not item.text:
                        signs.append(anyio.current_time())  # noqa: PERF401  # the time of each is wanted

        async with anyio.create_task_group() as group:
            group.start_soon(provider.complete, ask())
            await anyio.sleep(1)
            group.start_soon(second)
            await anyio.sleep(1)
            assert len(script.requests) == 1

        assert signs[0] == 6
        assert len(script.requests) == 2

    VirtualClock().run(main, backend=anyio_backend_name)


async def test_events_without_words_and_comments_are_signs_of_life() -> None:
    events = sse({"ping": 1}) + b": alive\n\n" + sse({"say": ""}, DONE)
    provider, _ = parrot(HttpAnswer(parts=(events,)))

    async with provider.stream(ask()) as items:
        seen = [item async for item in items]

    assert [item.text for item in seen[:-1] if isinstance(item, TextDelta)] == [
        "",
        "",
        "",
        "",
    ]


async def test_what_showed_nothing_may_be_asked_for_again() -> None:
    empty = HttpAnswer(parts=(sse({"say": ""}),))
    provider, script = parrot(empty, speaking(), min_retry_delay=0)

    assert (await provider.complete(ask())).text == WORDS
    assert len(script.requests) == 2


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            HttpAnswer(headers={"content-type": "text/html"}, parts=(b"<p>Hi</p>",)),
            "answered with text/html",
        ),
        (json_answer({"say": "polly"}), "answered with application/json"),
        (
            json_answer({"error": {"code": 404, "message": "no such bird"}}),
            "status 404: no such bird",
        ),
        (HttpAnswer(parts=(b"data: " + b"x" * (17 << 20),)), "sent too much"),
    ],
    ids=["page", "json", "error", "endless"],
)
async def test_what_is_no_stream_is_said_to_be_none(
    answer: HttpAnswer, message: str
) -> None:
    provider, _ = parrot(answer, max_retries=0)

    with pytest.raises(LLMError, match=message):
        await provider.complete(ask())


async def test_lines_are_read_like_events() -> None:
    class Plain(ParrotProvider):
        framing: ClassVar[Literal["sse", "lines"]] = "lines"

    page = HttpAnswer(headers={"content-type": "text/html"}, parts=(b"<p>Hi</p>",))
    lines = HttpAnswer(
        headers={"content-type": "application/json"},
        parts=(b'{"say": "hi"}\n{"done": {"in": 1}}',),
    )
    provider, _ = parrot(lines, page, kind=Plain, max_retries=0)

    assert (await provider.complete(ask())).text == "hi"
    with pytest.raises(LLMError, match="text/html"):
        await provider.complete(ask())


async def test_vendor_that_cannot_be_reached_is_named_without_secrets() -> None:
    steps = (
        httpx2.ConnectError("refused"),
        httpx2.ProxyError("407"),
        httpx2.DecodingError("gzip"),
    )
    provider, _ = parrot(
        *steps, base_url="http://me:secret@cage.example/v1?key=abc", max_retries=0
    )

    with pytest.raises(
        NetworkError,
        match=r"reached at http://\(withheld\)@cage.example/v1\?\(withheld\): refused",
    ):
        await provider.complete(ask())
    with pytest.raises(
        NetworkError, match="proxy does not let the request through: 407"
    ):
        await provider.complete(ask())
    with pytest.raises(LLMError, match="broke: gzip"):
        await provider.complete(ask())


def test_a_request_as_sent_is_a_plain_value() -> None:
    assert Outgoing(path="a", body={}) == Outgoing(path="a", body={})


async def test_raw_events_carry_what_sent_and_received_without_key() -> None:
    coordinator = TestCoordinator()
    recorder = EventRecorder.of(coordinator.hooks, "llm:*")
    echo = HttpAnswer(parts=(sse({"say": f"my key is {KEY}"}, DONE),))
    provider, _ = parrot(echo, coordinator=coordinator, raw=True)

    await provider.complete(ask())

    (_, sent), (_, received) = recorder.events
    assert sent["raw"] == {"model": "grey", "words": ["hello"]}
    assert received["raw"] == [
        '{"say": "my key is (withheld)"}',
        '{"done": {"in": 7, "out": 3}}',
    ]


async def test_stream_broken_after_first_words_is_not_retried() -> None:
    provider, script = parrot(
        HttpAnswer(parts=(sse({"say": "polly"}), httpx2.ReadError("reset"))), speaking()
    )

    with pytest.raises(LLMError, match="broke: reset"):
        await provider.complete(ask())

    assert len(script.requests) == 1


def test_waits_and_silences_end_in_time(anyio_backend_name: str) -> None:
    async def main() -> None:
        slow = HttpAnswer(status=429, headers={"retry-after": "12"})
        provider, _ = parrot(slow, speaking())
        async with provider.stream(ask()) as items:
            signs = [
                anyio.current_time()
                async for item in items
                if isinstance(item, TextDelta) and not item.text
            ]
        assert signs == [5, 10, 12]
        provider, _ = parrot(
            speaking(100.0),
            speaking(6.0, b": a\n\n", 6.0, b": b\n\n", 6.0),
            idle_timeout=7.0,
            timeout=15.0,
        )
        for message in ("silent for 7 s", "longer than 15 s"):
            with pytest.raises(LLMError, match=message):
                await provider.complete(ask())

    VirtualClock().run(main, backend=anyio_backend_name)


async def test_what_fails_in_the_provider_itself_is_told_and_passes() -> None:
    class Broken(ParrotProvider):
        async def credentials(self) -> dict[str, str]:
            raise RuntimeError(f"no token for {KEY}")

    coordinator = TestCoordinator()
    recorder = EventRecorder.of(coordinator.hooks, LLM_RESPONSE)
    provider, _ = parrot(coordinator=coordinator, kind=Broken)
    provider.withholder.learn(KEY)

    with pytest.raises(RuntimeError):
        await provider.complete(ask())

    assert recorder.events[0][1]["error"] == "RuntimeError: no token for (withheld)"


async def test_a_cancelled_exchange_is_told() -> None:
    coordinator = TestCoordinator()
    recorder = EventRecorder.of(coordinator.hooks, LLM_RESPONSE)
    provider, script = parrot(speaking(anyio.Event()), coordinator=coordinator)

    async with provider.stream(ask()) as items:
        async for _ in items:
            break

    assert [data["status"] for _, data in recorder.events] == ["cancelled"]
    assert script.closed == [True]


async def test_an_answer_without_counts_has_no_cost() -> None:
    coordinator = TestCoordinator()
    recorder = EventRecorder.of(coordinator.hooks, LLM_RESPONSE)
    provider, _ = parrot(
        HttpAnswer(parts=(sse({"say": "hi"}, {"done": {}}),)), coordinator=coordinator
    )

    assert (await provider.complete(ask())).usage is None
    assert "usage" not in recorder.events[0][1]


async def test_a_header_that_the_network_refuses_is_not_shown() -> None:
    provider, _ = parrot(httpx2.LocalProtocolError(f"Illegal header value {KEY}"))

    with pytest.raises(
        ConfigurationError, match="a header's name or value is not allowed"
    ):
        await provider.complete(ask())


async def test_the_provider_opens_a_network_of_its_own_and_closes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider, _ = parrot(base_url="http://127.0.0.1:9", max_retries=0)
    provider.transport = None

    with pytest.raises(
        NetworkError, match=r"cannot be reached at http://127\.0\.0\.1:9"
    ):
        await provider.complete(ask())

    await provider.aclose()
    await provider.aclose()


def test_the_kit_names_what_it_has_and_nothing_else() -> None:
    from amplifier_kit import vendors

    assert dir(vendors) == sorted(vendors.__all__)
    assert all(getattr(vendors, name) is not None for name in vendors.__all__)
    with pytest.raises(AttributeError, match="nothing_such"):
        getattr(vendors, "nothing_such")  # noqa: B009  # a type checker knows that it is not there


async def test_page_that_quotes_address_shows_none_of_its_secrets() -> None:
    def page(request: httpx2.Request) -> HttpAnswer:
        said = f"Cannot POST {request.url.raw_path.decode()} as {request.headers['authorization']}"
        return HttpAnswer(
            status=404, headers={"content-type": "text/html"}, parts=(said.encode(),)
        )

    provider, _ = parrot(
        page, base_url="https://me:pass-word@parrot.example/v1?key=abc%2Fdef"
    )

    with pytest.raises(
        LLMError,
        match=r"Cannot POST /v1/speak\?key=\(withheld\)&loud=1 as Basic \(withheld\)",
    ):
        await provider.complete(ask())


async def test_an_error_with_half_a_character_can_be_written() -> None:
    provider, _ = parrot(
        json_answer({"error": {"message": "bad \ud83d text"}}, status=400)
    )

    with pytest.raises(LLMError, match="bad \ufffd text"):
        await provider.complete(ask())
