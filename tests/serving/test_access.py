"""Who may call, how often, and what a hostile request comes to."""

from __future__ import annotations

import anyio
import pytest

from amplifier import Agent
from amplifier.serving import ServerLimits, Token
from amplifier.serving import tokens as tokens_module
from amplifier_kit.scripted import answer
from amplifier_sdk.errors import ConfigError
from tests.doubles import ScriptedProvider
from tests.serving.client import ALICE, BOB, Caller, serving

SECRET = "0123456789abcdef"


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        f"Bearer {ALICE.secret}x",
        f"Bearer {ALICE.secret[:-1]}",
        f"Basic {ALICE.secret}",
        ALICE.secret,
        "Bearer \xff\xfe",
    ],
)
async def test_without_a_known_token_nothing_is_answered(header: str | None) -> None:
    async with serving(Agent(ScriptedProvider())) as alice:
        headers = {} if header is None else {"authorization": header}
        nobody = Caller(alice.app, None)
        for method, path in (
            ("GET", "/sessions"),
            ("POST", "/sessions"),
            ("GET", "/sessions/x"),
            ("DELETE", "/sessions/x"),
            ("POST", "/sessions/x/turns"),
            ("GET", "/sessions/x/turns/y"),
            ("GET", "/sessions/x/turns/y/events"),
            ("POST", "/sessions/x/turns/y/cancel"),
        ):
            answered = await nobody.request(method, path, None, headers)
            assert answered.status == 401, (method, path)
            assert answered.headers["www-authenticate"] == "Bearer"
        assert (await nobody.get("/health", headers)).json == {"status": "ok"}


async def test_every_token_is_compared_in_constant_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared: list[tuple[int, int]] = []

    def compare(left: bytes, right: bytes) -> bool:
        compared.append((len(left), len(right)))
        return left == right

    monkeypatch.setattr(tokens_module, "compare_digest", compare)
    async with serving(Agent(ScriptedProvider())) as alice:
        await alice.get("/sessions")
        await Caller(alice.app, "x").get("/sessions")

    # the first one that fits does not end it, and the length says nothing
    assert compared == [(32, 32)] * 4


async def test_another_tokens_sessions_are_invisible() -> None:
    gate = anyio.Event()
    async with serving(Agent(ScriptedProvider(answer("A", gate)))) as alice:
        session = await alice.begin()
        turn = await alice.turn(session)
        bob = Caller(alice.app, BOB.secret)
        own = await bob.begin()
        guessed = turn.replace(session, own)
        answers = [
            await bob.get(f"/sessions/{session}"),
            await bob.request("DELETE", f"/sessions/{session}"),
            await bob.post(f"/sessions/{session}/turns", {"prompt": "x"}),
            await bob.get(turn),
            await bob.get(f"{turn}/events"),
            await bob.post(f"{turn}/cancel"),
            await bob.get(guessed),
            await bob.get("/sessions/00000000-0000-0000-0000-000000000000"),
        ]
        listed = (await bob.get("/sessions")).json["sessions"]

        unknown = [answered.json["error"]["code"] for answered in answers]
        assert [answered.status for answered in answers] == [404] * len(answers)
        assert unknown == ["not_found"] * len(answers)
        assert [one["session_id"] for one in listed] == [own]
        assert (await alice.get(turn)).json["state"] == "running"


async def test_what_a_token_may_do_is_limited() -> None:
    token = Token(
        name="small", secret=SECRET, max_sessions=1, max_turns=1, max_streams=1
    )
    gate = anyio.Event()
    provider = ScriptedProvider(answer("A", gate), "B")
    async with serving(Agent(provider), tokens=(token, ALICE)) as alice:
        small = Caller(alice.app, SECRET)
        session = await small.begin()
        too_many = await small.post("/sessions")
        turn = await small.turn(session)
        body = {"prompt": "x", "when_busy": "queue"}
        second = await small.post(f"/sessions/{session}/turns", body)
        async with small.stream("GET", f"{turn}/events"):
            reading = await small.get(f"{turn}/events")
        gate.set()
        await small.events(turn)
        events = await small.events(await small.turn(session))
        others = await alice.begin()

    codes = [each.json["error"]["code"] for each in (too_many, second, reading)]
    assert codes == ["too_many_sessions", "too_many_turns", "too_many_streams"]
    assert {too_many.status, second.status, reading.status} == {429}
    assert events[-1].data["output"] == "B"
    assert others


async def test_requests_are_counted() -> None:
    token = Token(name="slow", secret=SECRET, max_requests=3)
    async with serving(Agent(ScriptedProvider()), tokens=(token,)) as anyone:
        slow = Caller(anyone.app, SECRET)
        answers = [await slow.get("/sessions") for _ in range(4)]

    assert [answered.status for answered in answers] == [200, 200, 200, 429]
    assert answers[-1].headers["retry-after"] == "21"


async def test_the_server_has_room_for_so_many_sessions() -> None:
    limits = ServerLimits(max_sessions=1)
    async with serving(Agent(ScriptedProvider()), limits=limits) as alice:
        await alice.begin()
        refused = await Caller(alice.app, BOB.secret).post("/sessions")

    assert (refused.status, refused.json["error"]["code"]) == (503, "server_full")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tokens": [ALICE, Token(name="alice", secret=SECRET)]},
        {"tokens": [ALICE, Token(name="carol", secret=ALICE.secret)]},
    ],
)
def test_a_server_without_clear_tokens_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="tokens"):
        Agent(ScriptedProvider()).asgi(**options)  # type: ignore[arg-type]  # on purpose


def test_a_short_token_is_refused_and_a_token_is_never_shown() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        Token(name="a", secret="short")
    assert ALICE.secret not in repr(ALICE)


async def test_anybody_may_call_where_the_program_says_so_but_no_page() -> None:
    agent = Agent(ScriptedProvider("A"))
    async with serving(agent, tokens=(), allow_anonymous=True) as known:
        anyone = Caller(known.app, None)
        page = await anyone.post("/sessions", None, {"origin": "https://evil.example"})
        guessed = await Caller(known.app, "guess").get("/sessions")
        events = await anyone.events(await anyone.turn(await anyone.begin()))

    assert (page.status, page.json["error"]["code"]) == (403, "origin_refused")
    assert guessed.status == 401
    assert events[-1].data["output"] == "A"


async def test_no_page_of_another_origin_may_read_unless_it_is_named() -> None:
    evil, good = {"origin": "https://evil.example"}, {"origin": "https://app.example"}
    asked = {"access-control-request-method": "POST"}
    async with serving(Agent(ScriptedProvider())) as alice:
        closed = await alice.get("/sessions", evil)
        preflight = await alice.request("OPTIONS", "/sessions", None, {**evil, **asked})
    origins = ["https://app.example"]
    async with serving(Agent(ScriptedProvider()), origins=origins) as alice:
        opened = await alice.get("/sessions", good)
        refused = await alice.get("/sessions", evil)
        allowed = await alice.request("OPTIONS", "/sessions", None, {**good, **asked})

    name = "access-control-allow-origin"
    assert name not in closed.headers
    assert preflight.status == 405
    assert opened.headers[name] == "https://app.example"
    assert name not in refused.headers
    assert allowed.status == 200


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "malformed_json"),
        (b"\xff\xfe", 400, "malformed_json"),
        (b'{"prompt": "\\ud800"}', 400, "malformed_json"),
        (b'{"prompt": NaN}', 400, "malformed_json"),
        (b"[" * 100_000, 400, "malformed_json"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, 400, "malformed_json"),
        (b"1" * 5000, 400, "malformed_json"),
        (b"[]", 422, "invalid_request"),
        (b"", 422, "invalid_request"),
        (b"{}", 422, "invalid_request"),
        (b'{"prompt": 1}', 422, "invalid_request"),
        (b'{"prompt": "x", "agent": "y"}', 422, "invalid_request"),
        (b'{"prompt": "x", "when_busy": "maybe"}', 422, "invalid_request"),
        (b'{"prompt": "' + b"x" * 2_000_000 + b'"}', 413, "body_too_large"),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_a_wrong_body_is_one_clear_error(
    body: bytes, status: int, code: str
) -> None:
    async with serving(Agent(ScriptedProvider())) as alice:
        session = await alice.begin()
        answered = await alice.post(f"/sessions/{session}/turns", body)

    assert (answered.status, answered.json["error"]["code"]) == (status, code)
    assert "Traceback" not in answered.body.decode()
    assert len(answered.body) < 1000


async def test_a_body_that_says_nothing_of_its_size_is_bounded_as_well() -> None:
    headers = {
        "authorization": f"Bearer {ALICE.secret}",
        "content-type": "application/json",
    }
    async with serving(Agent(ScriptedProvider())) as alice:
        pieces = [b"x" * 100_000] * 20
        async with alice.raw("POST", "/sessions", headers, pieces) as stream:
            assert stream.status == 413
        lies = {**headers, "content-length": "9" * 400}
        async with alice.raw("POST", "/sessions", lies, [b"{}"]) as stream:
            assert stream.status == 413


async def test_a_body_has_to_arrive_in_time() -> None:
    headers = {
        "authorization": f"Bearer {ALICE.secret}",
        "content-type": "application/json",
    }
    limits = ServerLimits(body_timeout=0.01)
    async with serving(Agent(ScriptedProvider()), limits=limits) as alice:
        slow = alice.raw("POST", "/sessions", headers, [b"{"], is_whole=False)
        async with slow as stream:
            assert stream.status == 408


async def test_a_body_of_a_form_is_refused() -> None:
    async with serving(Agent(ScriptedProvider())) as alice:
        session = await alice.begin()
        answered = await alice.post(
            f"/sessions/{session}/turns",
            {"prompt": "x"},
            {"content-type": "text/plain"},
        )

    assert answered.status == 415


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\n", "\u2028", "\u0085", "\0"])
async def test_no_text_forges_an_event(end: str) -> None:
    forged = f"{end}id: 99{end}data: {{}}{end}{end}event: forged{end}"
    async with serving(Agent(ScriptedProvider(forged))) as alice:
        turn = await alice.turn(await alice.begin(), forged)
        async with alice.stream("GET", f"{turn}/events") as stream:
            raw = await stream.rest()
        events = await alice.events(turn)

    assert [event.id for event in events] == [*range(1, len(events) + 1)]
    assert events[-1].data["output"] == forged
    for line in raw.decode("ascii").splitlines():
        assert line == "" or line.startswith(("id: ", "data: {"))


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("PUT", "/sessions", 405),
        ("GET", "/sessions/%2e%2e/x", 404),
        ("GET", "/sessions/" + "x" * 5000, 404),
        ("GET", "/sessions/\0", 404),
    ],
)
async def test_an_address_that_is_none_is_an_error_in_the_same_form(
    method: str, path: str, status: int
) -> None:
    async with serving(Agent(ScriptedProvider())) as alice:
        answered = await alice.request(method, path)

    assert answered.status == status
    assert set(answered.json["error"]) == {"code", "message"}


async def test_a_fault_of_the_server_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("secret-of-the-server")

    async with serving(Agent(ScriptedProvider())) as alice:
        session = await alice.begin()
        monkeypatch.setattr("amplifier.serving.sessions.ServedSession.to_json", fail)
        answered = await alice.get(f"/sessions/{session}")

    assert answered.status == 500
    assert b"secret-of" not in answered.body
    assert answered.json["error"]["code"] == "internal_error"
