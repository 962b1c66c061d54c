"""`amplifier doctor --server`: a server that runs, one that does not, and stores that refuse."""

from __future__ import annotations

import json
import socket

import anyio
import pytest
from click.testing import CliRunner, Result

from amplifier.cli import main
from amplifier.testing.postgres import PASSWORD, find_programs, running_server
from tests.server.serving import Site
from tests.server.test_page import served

pytestmark = [pytest.mark.process, pytest.mark.timeout(120)]


def doctor(target: str) -> Result:
    return CliRunner().invoke(main, ["doctor", "--server", target, "--json"])


def findings(result: Result) -> list[tuple[str, str]]:
    checks = json.loads(result.stdout)["checks"]
    return [(one["area"], one["status"]) for one in checks]


def test_a_server_and_its_store_are_in_order(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = anyio.run(site.token)
    file = site.plan("Fine.").file
    with served(site, "--plan", str(file)) as url:
        monkeypatch.setenv("AMPLIFIER_SERVER_TOKEN", secret)
        good = doctor(url)
        monkeypatch.setenv("AMPLIFIER_SERVER_TOKEN", "another-token-0123456789")
        refused = doctor(url)
        monkeypatch.delenv("AMPLIFIER_SERVER_TOKEN")
        anonymous = doctor(url)
    store = doctor("files")

    assert (good.exit_code, refused.exit_code, anonymous.exit_code) == (0, 1, 0)
    assert findings(good) == [("server", "ok"), ("server", "ok"), ("token", "ok")]
    assert "olga is owner of tenant default" in good.stdout
    assert findings(refused)[-1] == ("token", "broken")
    assert findings(anonymous)[-1] == ("token", "warning")
    assert findings(store)[0] == ("store", "ok")
    assert findings(store)[-1] == ("token", "ok")
    assert store.exit_code == 0
    # nothing of it stays
    assert not list(site.home.rglob("doctor-*"))


@pytest.mark.parametrize("target", ["http://127.0.0.1:{}", "http://:{}", "https://x y"])
def test_a_server_that_is_not_there_is_said_to_be(site: Site, target: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    result = doctor(target.format(port))

    assert result.exit_code == 1
    assert findings(result) == [("server", "broken")]


def test_each_way_in_which_a_database_refuses_is_named(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = find_programs()
    if programs is None:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    output: dict[str, str] = {}
    with running_server(programs) as database:
        url = database.url()
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        good = doctor(url)
        monkeypatch.setenv("PGPASSWORD", "wrong-password")
        output["password"] = doctor(url).stdout
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        output["name"] = doctor(database.url("nowhere")).stdout
        newer(url)
        output["newer"] = doctor(url).stdout
        database.stop()
        output["stopped"] = doctor(url).stdout
        database.start()

    assert findings(good) == [("store", "ok"), ("store", "ok"), ("token", "warning")]
    for key, words in (
        ("password", "password authentication failed"),
        ("name", "nowhere"),
        ("newer", "has version 99"),
        ("stopped", "refused"),
    ):
        (check,) = json.loads(output[key])["checks"]
        assert check["status"] == "broken"
        assert words in check["message"], (key, check)
        assert "\n" not in check["message"]
        assert PASSWORD not in output[key]
        assert "wrong-password" not in output[key]


def newer(url: str) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("UPDATE amplifier.schema_version SET version = 99")
