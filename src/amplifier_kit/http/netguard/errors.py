"""Why a web address was not fetched, each with what to do instead.

```
ToolError
└── WebError                        an address cannot be fetched; holds `url`
    ├── InvalidUrlError             it is no web address, or one that two readers could read differently
    ├── DomainRefusedError          the configuration keeps its domain out
    ├── PortRefusedError            its port serves no web pages
    ├── AddressRefusedError         its host is, or its name leads to, an address that is not public
    ├── HostUnknownError            its name leads to no address
    ├── HostUnreachableError        no connection, or it broke; nothing was read
    ├── RedirectError               it leads on too often, or to nowhere
    └── BodyError                   what came cannot be read
```
"""

from __future__ import annotations

from typing import Final

from amplifier_sdk.errors import ToolError

__all__ = [
    "AddressRefusedError",
    "BodyError",
    "DomainRefusedError",
    "HostUnknownError",
    "HostUnreachableError",
    "InvalidUrlError",
    "PortRefusedError",
    "RedirectError",
    "WebError",
]


_SHOWN: Final = 300


class WebError(ToolError):
    """An address cannot be fetched; `url` is the one that failed, which may be the target of a redirect."""

    def __init__(self, url: str, problem: str) -> None:
        self.url = url
        self.problem = problem
        shown = repr(url)  # without line ends, and of a length that can be read
        if len(shown) > _SHOWN:
            shown = f"{shown[:_SHOWN]}…"
        super().__init__(f"{shown}: {problem}")


class InvalidUrlError(WebError):
    """A text is no web address, or one that two readers could read differently."""


class DomainRefusedError(WebError):
    """The configuration keeps the address's domain out."""


class PortRefusedError(WebError):
    """The address's port serves no web pages."""


class AddressRefusedError(WebError):
    """The host is an address that is not public, or its name leads to one."""


class HostUnknownError(WebError):
    """The host's name leads to no address."""


class HostUnreachableError(WebError):
    """There was no connection, or it broke."""


class RedirectError(WebError):
    """The address leads on too often, or to nowhere."""


class BodyError(WebError):
    """What the server sent cannot be read."""
