"""What was allowed for longer than a session, at the command line."""

from __future__ import annotations

import json
import time

import anyio
import pytest

from amplifier_kit.rules.permissions import PermissionRule, Permissions
from tests.cli.programs import call


def grant(id: str, **fields: object) -> None:
    """Let a permission hold."""
    defaults: dict[str, object] = {
        "scope": "project",
        "tool_name": "bash",
        "action": "commands that begin with 'git push'",
        "folder": "/srv/shop",
        "distribution": "acme 1.0",
        "expires": time.time() + 1000,
    }
    permission = PermissionRule(id=id, **{**defaults, **fields})  # type: ignore[arg-type]  # its fields
    anyio.run(Permissions.in_home().grant, permission)


def test_permissions_listed_and_taken_back_by_beginning_of_id() -> None:
    for command in (("permissions",), ("permissions", "list")):
        assert "Nothing is allowed" in call(*command).stderr
    grant("aa11", granted=1.0)
    grant(
        "aa22",
        scope="everywhere",
        folder="",
        action="edits\x1b[2J",
        expires=None,
        granted=2.0,
    )
    grant("bb33", expires=time.time() - 1)

    lines = call("permissions", "list").stdout.splitlines()

    assert [line.split()[0] for line in lines] == ["ID", "aa11", "aa22"]
    assert "/srv/shop" in lines[1]
    assert "everywhere" in lines[2]
    assert "\x1b" not in lines[2]
    assert [
        entry["id"]
        for entry in json.loads(call("permissions", "list", "--json").stdout)
    ] == ["aa11", "aa22"]
    assert (
        "2 IDs begin with 'aa'" in call("permissions", "revoke", "aa", expect=1).stderr
    )
    assert (
        "nothing is allowed under 'bb'"
        in call("permissions", "revoke", "bb", expect=1).stderr
    )
    assert (
        "taken back: commands that begin" in call("permissions", "revoke", "aa1").stderr
    )
    assert [
        entry["id"]
        for entry in json.loads(call("permissions", "list", "--json").stdout)
    ] == ["aa22"]
    call("permissions", "revoke", "--all")
    assert json.loads(call("permissions", "list", "--json").stdout) == []


@pytest.mark.parametrize("arguments", [(), ("aa", "--all")], ids=["nothing", "both"])
def test_what_is_taken_back_is_said(arguments: tuple[str, ...]) -> None:
    assert "give --all" in call("permissions", "revoke", *arguments, expect=2).stderr
