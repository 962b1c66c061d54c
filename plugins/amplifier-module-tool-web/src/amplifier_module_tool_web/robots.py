"""What sites ask of programs that fetch their pages, for those who want to respect it.

Source: RFC 9309: no file means no rules, and a site whose rules cannot be read is not fetched from. Rules are matched
in linear time, whatever they are. Of those that match a path the longest decides, and of two as long the one that
allows; `*` stands for any characters and `$` for the end.
"""

from __future__ import annotations

import re
import string
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import quote

import attrs

from amplifier_kit.http.netguard import WebError, WebUrl
from amplifier_sdk.errors import ToolError

if TYPE_CHECKING:
    from amplifier_kit.http.netguard import FetchedResponse, Fetcher

__all__ = ["RobotRules", "Robots"]

_TOKEN: Final = re.compile(r"[a-z_-]+|\*")
_ESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")
_UNRESERVED: Final = frozenset(string.ascii_letters + string.digits + "-._~")

_MAX_BYTES: Final = 500 * 1024
_MAX_SITES: Final = 64


@attrs.define(eq=False)
class Robots:
    """The rules of the sites that a session has fetched from; each site is asked once."""

    fetcher: Fetcher
    user_agent: str
    _sites: OrderedDict[str, RobotRules] = attrs.field(factory=OrderedDict, init=False)

    async def check(self, url: WebUrl) -> None:
        """Refuse an address that its site does not want fetched.

        Raises:
            ToolError: the site forbids it, or its rules cannot be read.
        """
        site = f"{url.scheme}://{url.authority}"
        if site not in self._sites:
            file = attrs.evolve(url, target="/robots.txt")
            try:
                async with self.fetcher.get(file) as answer:
                    text = await self._text(answer)
            except WebError as error:
                raise ToolError(
                    f"{file} cannot be read, so the site is not fetched from: {error.message}"
                ) from error
            self._sites[site] = RobotRules.read(text, self.user_agent)
            if len(self._sites) > _MAX_SITES:
                self._sites.popitem(last=False)
        if not self._sites[site].allow(url.target):
            raise ToolError(
                f"{url}: the site's robots.txt forbids fetching it; use another source"
            )

    async def _text(self, answer: FetchedResponse) -> str:
        # RFC 9309, 2.3.1.4: unreachable rules forbid everything
        if answer.status >= 500:
            raise ToolError(
                f"{answer.url} answers with status {answer.status}, so the site is not fetched from"
            )
        # RFC 9309, 2.3.1.3: where there is no file, there are no rules
        if answer.status >= 300:
            return ""
        return (await answer.read(_MAX_BYTES)).data.decode("utf-8", "replace")


@attrs.frozen
class _Rule:
    pattern: str
    allows: bool

    def matches(self, target: str) -> bool:
        """Tell whether the pattern is what a target begins with, or, with `$` at its end, all of it."""
        is_whole = self.pattern.endswith("$")
        first, *others = self.pattern.removesuffix("$").split("*")
        if not others:
            if is_whole:
                return target == first
            return target.startswith(first)
        if not target.startswith(first):
            return False
        at, last = len(first), others.pop() if is_whole else ""
        for piece in others:
            at = target.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return target.endswith(last) and len(target) - len(last) >= at


@attrs.frozen
class RobotRules:
    """What one site allows one program."""

    _rules: tuple[_Rule, ...]

    @classmethod
    def read(cls, text: str, user_agent: str) -> Self:
        """Read a `robots.txt`: the groups that name the program, else those for all.

        Args:
            text: the file.
            user_agent: who asks; one of its words is what groups name.
        """
        groups: list[tuple[set[str], list[_Rule]]] = []
        for line in text.removeprefix("\ufeff").splitlines():
            key, _, value = (
                part.strip() for part in line.partition("#")[0].partition(":")
            )
            if key.lower() == "user-agent":
                # names that follow each other share what comes behind them
                if not groups or groups[-1][1]:
                    groups.append((set(), []))
                # a version may stand behind the name
                groups[-1][0].update(_TOKEN.findall(value.lower())[:1])
            elif key.lower() in ("allow", "disallow") and groups:
                groups[-1][1].append(
                    _Rule(_plain(value), allows=key.lower() == "allow")
                )
        asking = {*_TOKEN.findall(user_agent.lower())}
        own = [rules for names, rules in groups if names & asking] or [
            rules for names, rules in groups if "*" in names
        ]
        return cls(tuple(rule for rules in own for rule in rules if rule.pattern))

    def allow(self, target: str) -> bool:
        """Tell whether a path with its query may be fetched."""
        plain = _plain(target)
        found = [
            (len(rule.pattern), rule.allows)
            for rule in self._rules
            if rule.matches(plain)
        ]
        return plain == "/robots.txt" or not found or max(found)[1]


def _plain(target: str) -> str:
    """Write a path in the one form that paths are compared in: percent signs only before what needs them."""
    return _ESCAPED.sub(_unescaped, quote(target, safe=string.printable))


def _unescaped(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    if character in _UNRESERVED:
        return character
    return match[0].upper()
