"""What sites ask of programs that fetch their pages, for those who want to respect it.

Source: RFC 9309: no file means no rules, and a site whose rules cannot be read is not fetched from.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import attrs

from amplifier_kit.http.netguard import WebError, WebUrl
from amplifier_module_tool_web.robot_rules import RobotRules
from amplifier_sdk.errors import ToolError

if TYPE_CHECKING:
    from amplifier_kit.http.netguard import FetchedResponse, Fetcher

__all__ = ["Robots"]

_MOST_BYTES: Final = 500 * 1024
_MOST_SITES: Final = 64


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
            self._sites[site] = await self._read(
                attrs.evolve(url, target="/robots.txt")
            )
            if len(self._sites) > _MOST_SITES:
                self._sites.popitem(last=False)
        if not self._sites[site].allow(url.target):
            raise ToolError(
                f"{url}: the site's robots.txt forbids fetching it; use another source"
            )

    async def _read(self, url: WebUrl) -> RobotRules:
        try:
            async with self.fetcher.get(url) as answer:
                text = await self._text(answer)
        except WebError as error:
            raise ToolError(
                f"{url} cannot be read, so the site is not fetched from: {error.message}"
            ) from error
        return RobotRules.read(text, self.user_agent)

    async def _text(self, answer: FetchedResponse) -> str:
        # RFC 9309, 2.3.1.4: unreachable rules forbid everything
        if answer.status >= 500:
            raise ToolError(
                f"{answer.url} answers with status {answer.status}, so the site is not fetched from"
            )
        # RFC 9309, 2.3.1.3: where there is no file, there are no rules
        if answer.status >= 300:
            return ""
        return (await answer.read(_MOST_BYTES)).data.decode("utf-8", "replace")
