"""Rules together, and their conditions on hosts, effects and argument values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from amplifier_kit.rules import RuledCall, RuleSet
from amplifier_kit.shell.decisions import Decision
from amplifier_sdk import ConfigError
from amplifier_sdk.effects import Effect
from amplifier_sdk.jsontypes import JSONValue

HERE = Path("/srv/project")


def evaluated(
    rule: Mapping[str, JSONValue],
    arguments: Mapping[str, JSONValue],
    *,
    effects: tuple[Effect, ...] | None = None,
    tool: str = "t",
) -> Decision:
    otherwise: Decision = "ask" if rule["decision"] == "allow" else "allow"
    rules = RuleSet.load([rule], directory=HERE, otherwise=otherwise)
    known = None if effects is None else frozenset(effects)
    return rules.evaluate(
        RuledCall(tool_name=tool, arguments=arguments, directory=HERE, effects=known)
    ).decision


@pytest.mark.parametrize(
    ("host", "url", "decision"),
    [
        ("example.com", "https://example.com/a", "allow"),
        ("example.com", "https://EXAMPLE.com:8443/", "allow"),
        ("example.com", "https://docs.example.com/", "allow"),
        ("*.example.com", "https://docs.example.com/", "allow"),
        ("*.example.com", "https://example.com/", "ask"),
        ("example.com", "https://notexample.com/", "ask"),
        ("example.com", "https://example.com.evil.net/", "ask"),
        ("example.com", "https://example.com@evil.net/", "ask"),
        ("example.com", "https://evil.net/example.com", "ask"),
        ("example.com", "https://evil.net\\@example.com", "ask"),
        ("example.com", "//example.com", "ask"),
        ("example.com", "file:///example.com", "ask"),
        ("127.0.0.1", "http://127.1/", "ask"),
        ("example.com", 3, "ask"),
    ],
)
def test_hosts_are_compared_by_label(
    host: str, url: JSONValue, decision: Decision
) -> None:
    assert evaluated({"decision": "allow", "hosts": [host]}, {"url": url}) == decision


@pytest.mark.parametrize(
    ("url", "decision"),
    [
        ("https://evil.net/", "deny"),
        ("https://x.evil.net/", "deny"),
        ("https://fine.org/", "allow"),
        ("evil", "ask"),
    ],
)
def test_a_host_that_is_refused_is_found(url: str, decision: Decision) -> None:
    assert (
        evaluated(
            {"decision": "deny", "hosts": ["evil.net"]},
            {"urls": ["https://fine.org", url]},
        )
        == decision
    )


@pytest.mark.parametrize(
    ("effects", "allowed", "refused"),
    [
        (("read",), "allow", "allow"),
        (("read", "write"), "ask", "deny"),
        (("exec",), "ask", "allow"),
        (None, "ask", "ask"),
    ],
    ids=["read", "both", "exec", "unknown"],
)
def test_effects_are_those_that_the_tool_declares(
    effects: tuple[Effect, ...] | None, allowed: Decision, refused: Decision
) -> None:
    assert (
        evaluated({"decision": "allow", "effects": ["read"]}, {}, effects=effects)
        == allowed
    )
    assert (
        evaluated({"decision": "deny", "effects": ["write"]}, {}, effects=effects)
        == refused
    )


@pytest.mark.parametrize(
    ("path", "wanted", "arguments", "decision"),
    [
        ("mode", "fast", {"mode": "fast"}, "allow"),
        ("mode", ["fast", "slow"], {"mode": "slow"}, "allow"),
        ("mode", "fast", {"mode": "fastest"}, "ask"),
        ("mode", "fast", {}, "ask"),
        ("count", 1, {"count": True}, "ask"),
        ("count", 1, {"count": 1}, "allow"),
        ("o.force", False, {"o": {"force": False}}, "allow"),
        ("o.force", False, {"o": 3}, "ask"),
        ("e[*].to", "a", {"e": [{"to": "a"}, {"to": "b"}]}, "ask"),
        ("e[*].to", "a", {"e": [{"to": "a"}]}, "allow"),
        ("e[0].to", "a", {"e": [{"to": "a"}, {"to": "b"}]}, "allow"),
        ("e[5]", "a", {"e": []}, "ask"),
    ],
)
def test_argument_values_are_found_by_their_path(
    path: str, wanted: JSONValue, arguments: Mapping[str, JSONValue], decision: Decision
) -> None:
    assert (
        evaluated({"decision": "allow", "arguments": {path: wanted}}, arguments)
        == decision
    )


def test_one_refused_value_among_several_is_enough() -> None:
    rule: Mapping[str, JSONValue] = {"decision": "deny", "arguments": {"e[*]": "x"}}
    assert evaluated(rule, {"e": ["a", "x"]}) == "deny"
    assert evaluated(rule, {"e": ["a"]}) == "allow"


@pytest.mark.parametrize(
    ("tool", "decision"), [("mcp_x", "allow"), ("xmcp_", "ask"), ("MCP_x", "ask")]
)
def test_tool_names_are_anchored(tool: str, decision: Decision) -> None:
    assert (
        evaluated({"decision": "allow", "tools": ["mcp_*"]}, {}, tool=tool) == decision
    )


@pytest.mark.parametrize(
    "key", ["file_path", "output_path", "save_to_file", "Save_To_File"]
)
def test_a_refused_path_is_found_under_every_key_that_holds_one(key: str) -> None:
    assert (
        evaluated(
            {"decision": "deny", "paths": [".git/**"]},
            {"url": "https://a.example", key: ".git/hooks/x"},
        )
        == "deny"
    )


def test_all_conditions_must_hold() -> None:
    rule: Mapping[str, JSONValue] = {
        "decision": "allow",
        "tools": ["t"],
        "paths": ["a"],
        "arguments": {"x": 1},
    }
    assert evaluated(rule, {"path": "a", "x": 1}) == "allow"
    assert evaluated(rule, {"path": "b", "x": 1}) == "ask"
    assert evaluated(rule, {"path": "a", "x": 2}) == "ask"


def test_the_strictest_rule_counts_and_says_why() -> None:
    rules = RuleSet.load(
        [
            {"decision": "allow", "tools": ["*"]},
            {"decision": "deny", "tools": ["rm"], "reason": "never"},
            {"decision": "ask", "tools": ["r*"]},
        ],
        directory=HERE,
    )

    def reason(tool: str) -> tuple[Decision, str, int | None]:
        evaluation = rules.evaluate(
            RuledCall(tool_name=tool, arguments={}, directory=HERE)
        )
        return evaluation.decision, evaluation.reason, evaluation.rule

    assert reason("rm") == ("deny", "never", 1)
    assert reason("rx") == ("ask", "rule 3 is about it", 2)
    assert reason("ls") == ("allow", "rule 1 is about it", 0)


def test_a_call_that_may_be_meant_says_so() -> None:
    rules = RuleSet.load([{"decision": "deny", "effects": ["write"]}], directory=HERE)
    evaluation = rules.evaluate(RuledCall(tool_name="t", arguments={}, directory=HERE))
    assert (evaluation.decision, evaluation.reason) == ("ask", "rule 1 may be about it")


def test_a_call_that_no_rule_is_about_is_asked_about() -> None:
    evaluation = RuleSet.load([], directory=HERE).evaluate(
        RuledCall(tool_name="t", arguments={}, directory=HERE)
    )
    assert (evaluation.decision, evaluation.reason, evaluation.rule) == (
        "ask",
        "no rule is about it",
        None,
    )


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ({}, "the rule is about nothing"),
        ({"tools": ["t"], "match": [{"tool": "x"}]}, "does not fit the rule"),
        ({"tools": ["t"], "not_match": [{"tool": "t"}]}, "fits the rule"),
        ({"paths": ["a"], "match": ["b"]}, "'b' does not fit the rule"),
        ({"paths": ["a"], "not_match": ["./a"]}, "'./a' fits the rule"),
        ({"commands": ["ls"], "match": ["ls; rm x"]}, "does not fit the rule"),
        ({"hosts": ["a.org"], "match": ["https://b.org"]}, "does not fit the rule"),
        ({"hosts": ["https://a.org"]}, "write a domain as example.com"),
        ({"arguments": {"a..b": 1}}, "is no path to an argument"),
        (
            {"paths": ["a"], "hosts": ["b.org"], "match": ["a"]},
            "may mean several things here",
        ),
        ({"tools": ["t"], "match": [{"tol": "t"}]}, "is no example"),
        ({"tools": ["t"], "match": [{"arguments": 3}]}, "is no example"),
        ({"tools": ["t"], "match": [{"effects": ["burn"]}]}, "has effects other than"),
        (
            {"effects": ["read"], "match": [{"effects": ["write"]}]},
            "does not fit the rule",
        ),
        ({"tools": ["t"], "colour": "red"}, "colour"),
        ({"tools": ["t"], "effects": ["burn"]}, "burn"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_when_it_is_loaded(
    rule: Mapping[str, JSONValue], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        RuleSet.load([{"decision": "allow", **rule}], directory=HERE)


def test_examples_that_hold_are_fine() -> None:
    rule: Mapping[str, JSONValue] = {
        "decision": "allow",
        "tools": ["write_*", "move"],
        "effects": ["write"],
        "paths": ["src/**"],
        "match": [
            "src/a",
            {
                "tool": "write_file",
                "arguments": {"path": "src/b"},
                "effects": ["write"],
            },
        ],
        "not_match": [
            "b",
            {"tool": "rm", "arguments": {"path": "src/b"}},
            {"arguments": {"path": "src/b"}, "effects": []},
        ],
    }
    RuleSet.load([rule], directory=HERE)


def test_a_call_has_one_text() -> None:
    first = RuledCall(
        tool_name="t", arguments={"b": 1, "a": [{"d": 1, "c": 2}]}, directory=HERE
    )
    second = RuledCall(
        tool_name="t", arguments={"a": [{"c": 2, "d": 1}], "b": 1}, directory=HERE
    )
    assert first.canonical == second.canonical


@pytest.mark.parametrize("value", [float("nan"), {1, 2}], ids=["nan", "set"])
def test_what_is_no_json_has_no_text(value: object) -> None:
    call = RuledCall(tool_name="t", arguments={"x": value}, directory=HERE)  # type: ignore[dict-item]  # what JSON lacks
    with pytest.raises(ValueError, match=r"JSON"):
        _ = call.canonical


def test_public_names_are_listed() -> None:
    from amplifier_kit import rules

    assert dir(rules) == rules.__all__
    assert all(getattr(rules, name) is not None for name in rules.__all__)
