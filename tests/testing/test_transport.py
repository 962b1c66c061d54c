from __future__ import annotations

import anyio
import httpx2
import pytest
from anyio.lowlevel import checkpoint

from amplifier.testing import VirtualClock
from amplifier.testing.transport import (
    HttpAnswer,
    HttpStep,
    ScriptedTransport,
    json_answer,
    json_lines,
    pieces,
    sse,
)


def client(*steps: HttpStep) -> tuple[httpx2.AsyncClient, ScriptedTransport]:
    transport = ScriptedTransport(*steps)
    return httpx2.AsyncClient(
        transport=transport, base_url="http://acme.example"
    ), transport


def test_events_are_written_as_servers_send_them() -> None:
    written = sse("[DONE]", {"ä": 1}, ("ping", {"a": 1}), ("raw", "text"))

    assert written.decode() == (
        'data: [DONE]\n\ndata: {"ä": 1}\n\nevent: ping\ndata: {"a": 1}\n\nevent: raw\ndata: text\n\n'
    )


def test_lines_and_pieces() -> None:
    assert json_lines({"a": "ä"}, [1]) == '{"a": "ä"}\n[1]\n'.encode()
    assert pieces(b"abcdef", [1, 4]) == (b"a", b"bcd", b"ef")
    assert pieces(b"abc", []) == (b"abc",)


async def test_answers_come_in_order_of_requests_and_what_asked_kept() -> None:
    http, transport = client(
        HttpAnswer(parts=(b"a", b"b")),
        json_answer({"c": 1}, status=404, headers={"X-Y": "z"}),
    )

    first, second = await http.get("/one"), await http.post("/two", json={"q": 1})

    assert (first.text, first.headers["content-type"]) == ("ab", "text/event-stream")
    assert (second.status_code, second.json(), second.headers["x-y"]) == (
        404,
        {"c": 1},
        "z",
    )
    assert [request.url.path for request in transport.requests] == ["/one", "/two"]
    assert transport.bodies == [None, {"q": 1}]
    assert transport.closed == [True, True]
    await http.aclose()
    assert transport.is_closed


async def test_a_refusal_is_json_unless_it_says_otherwise() -> None:
    http, _ = client(
        HttpAnswer(status=500),
        HttpAnswer(status=500, headers={"Content-Type": "text/html"}),
    )

    kinds = [(await http.get("/")).headers["content-type"] for _ in range(2)]

    assert kinds == ["application/json", "text/html"]
    await http.aclose()


async def test_step_may_fail_or_be_function_of_all_further_requests() -> None:
    http, _ = client(
        httpx2.ConnectError("refused"),
        lambda request: HttpAnswer(parts=(request.url.path.encode(),)),
    )

    with pytest.raises(httpx2.ConnectError):
        await http.get("/")

    assert [(await http.get(path)).text for path in ("/a", "/b")] == ["/a", "/b"]
    await http.aclose()


async def test_a_script_that_is_at_its_end_says_so() -> None:
    http, _ = client(HttpAnswer())
    await http.get("/")

    with pytest.raises(AssertionError, match="The script has 1 answers"):
        await http.get("/")

    await http.aclose()


def test_seconds_pass_before_and_between_the_parts_of_an_answer(
    anyio_backend_name: str,
) -> None:
    async def main() -> None:
        gate = anyio.Event()
        answer = HttpAnswer(
            before=(2.0,), parts=(b"a", 3.0, gate, b"b", httpx2.ReadError("reset"))
        )
        http, transport = client(answer)
        times: list[tuple[bytes, float]] = []
        async with anyio.create_task_group() as group:

            async def open_late() -> None:
                await transport.wait_for_request()
                await transport.wait_for_request()
                await anyio.sleep(9)
                gate.set()

            group.start_soon(open_late)
            await checkpoint()
            with pytest.raises(httpx2.ReadError):
                async with http.stream("GET", "/") as response:
                    async for piece in response.aiter_raw():
                        times.append((piece, anyio.current_time()))  # noqa: PERF401  # what came before the error
        await http.aclose()

        assert times == [(b"a", 2.0), (b"b", 9.0)]
        assert transport.closed == [True]

    VirtualClock().run(main, backend=anyio_backend_name)
