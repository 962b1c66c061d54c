"""Two servers on one database: what one runs, the other shows, answers and ends."""

from __future__ import annotations

import attrs
import pytest

from amplifier.testing.postgres import PASSWORD, find_programs, running_server
from tests.server.serving import WRITES, Site, ended
from tests.server.test_sessions import begun, events_until
from tests.serving.client import Caller

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


async def test_two_servers_share_a_database(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    with running_server(programs) as database:
        url = f"postgresql://postgres@127.0.0.1:{database.port}/postgres"
        here = attrs.evolve(site, store=url)
        # another machine: its own files, and the served folder under the same path
        home = site.home.with_name("home of another")
        home.mkdir()
        there = attrs.evolve(here, home=home)
        secret = await here.token()
        async with here.serving(*WRITES) as one, there.serving(*WRITES) as other:
            near, far = Caller(one, secret), Caller(other, secret)
            session, turn = await begun(near)
            first = await events_until(far, session, "approval_requested")
            path = f"/sessions/{session}/approvals/{first[-1].data['approval_id']}"
            answered = await far.post(path, {"option": "Allow once"})
            rest = await events_until(near, session, "turn_result", first[-1].id)
            done = await ended(far, session, turn)
            found = (await far.get("/sessions?search=written")).json["sessions"]
            again = await far.post(f"/sessions/{session}/turns", {"prompt": "x"})
            more = await ended(near, session, again.json["turn_id"])
            children = (await far.get(f"/sessions/{session}/children")).status
            logs = (await far.get(f"/sessions/{session}/logs")).json["records"]
            odd = await far.get("/sessions?search=%00")
            nul = await far.get("/sessions/\0")

    ids = [event.id for event in (*first, *rest)]
    assert answered.status == 204
    assert ids == [*range(1, len(ids) + 1)]
    assert done["output"] == "Written."
    assert [one["session_id"] for one in found] == [session]
    # a further turn is taken by whichever machine is asked
    assert again.status == 202
    assert more["state"] == "finished", more
    assert children == 200
    assert logs
    assert (odd.status, nul.status) == (422, 404)
