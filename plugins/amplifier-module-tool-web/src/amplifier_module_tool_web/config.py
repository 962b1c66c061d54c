"""The module's configuration: what may be fetched, how much of it, and who is asked for searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

import attrs

from amplifier_kit.files.executed import EXECUTED_NAMES, GIT_FOLDER
from amplifier_kit.http.netguard import AddressRange, DomainPattern, NetPolicy
from amplifier_kit.vendors.addresses import valid_address
from amplifier_sdk.bounds import amount, count, pause, seconds
from amplifier_sdk.secret import Secret

__all__ = ["EngineName", "WebConfig"]

EngineName: TypeAlias = Literal["brave", "tavily", "searxng"]
"""The search services that are known here."""


def _ports(
    _: object,
    attribute: attrs.Attribute[tuple[int, ...] | None],
    value: tuple[int, ...] | None,
) -> None:
    if value is not None and any(
        isinstance(port, bool) or not 0 < port < 65536 for port in value
    ):
        raise ValueError(
            f"{attribute.name} are numbers from 1 to 65535; got {list(value)}"
        )


def _header(_: object, attribute: attrs.Attribute[str], value: str) -> None:
    if (
        not value
        or not value.isascii()
        or not value.isprintable()
        or value != value.strip()
    ):
        raise ValueError(
            f"{attribute.name} is a line of printable ASCII; got {value!r}"
        )


def _each(
    read: Callable[[str], object],
) -> Callable[[object, attrs.Attribute[tuple[str, ...]], tuple[str, ...]], None]:
    def check(
        _: object, attribute: attrs.Attribute[tuple[str, ...]], value: tuple[str, ...]
    ) -> None:
        for entry in value:
            try:
                read(entry)
            except ValueError as error:
                raise ValueError(f"{attribute.name}: {error}") from error

    return check


@attrs.frozen(kw_only=True)
class WebConfig:
    """What `config` of the plan may hold.

    Args:
        timeout: seconds that one fetch or search may take in all.
        idle_timeout: seconds of silence after which a server is given up.
        default_limit: characters of a page that one result holds unless the call says otherwise.
        max_limit: the most characters of a page that one result holds.
        max_bytes: how much of a page is read, in bytes after unpacking.
        max_redirects: how often an address may lead on.
        extract_text: whether HTML becomes Markdown; otherwise it is returned as it is.
        allowed_domains: the only ones to fetch from, each with all below it; empty means all.
        blocked_domains: never fetched from, each with all below it.
        allowed_ports: the only ports to fetch from; default 80, 443 and those from 1024 that no other service has.
        allowed_addresses: addresses that may be fetched from although they are not public.
        user_agent: who asks, for servers.
        respect_robots: whether pages are left alone that their site's `robots.txt` forbids.
        cache_seconds: how long a page is used again without asking its server; 0 turns that off.
        max_results: the most results of a search.
        search_engine: whom to ask; default a backend that a module registered, else the first whose key the
            environment has.
        api_key: the search service's key; default its environment variable.
        search_url: the search service's address; default its public one. It may be on a private network.
        working_dir: where relative paths start; default the session's working directory, else the process's.
        allowed_write_paths: directories to save files in; default the working directory alone.
        denied_write_paths: what is never written, even inside an allowed directory. An entry without a slash is a
            name, denied at any depth; one with a slash is a path, denied with all below it.
    """

    timeout: float = attrs.field(default=30.0, validator=seconds)
    idle_timeout: float = attrs.field(default=10.0, validator=seconds)
    default_limit: int = attrs.field(default=50_000, validator=count)
    max_limit: int = attrs.field(default=200_000, validator=count)
    max_bytes: int = attrs.field(default=5 * 1024 * 1024, validator=count)
    max_redirects: int = attrs.field(default=5, validator=amount)
    extract_text: bool = True
    allowed_domains: tuple[str, ...] = attrs.field(
        default=(), validator=_each(DomainPattern.read)
    )
    blocked_domains: tuple[str, ...] = attrs.field(
        default=(), validator=_each(DomainPattern.read)
    )
    allowed_ports: tuple[int, ...] | None = attrs.field(default=None, validator=_ports)
    allowed_addresses: tuple[str, ...] = attrs.field(
        default=(), validator=_each(AddressRange.read)
    )
    user_agent: str = attrs.field(default="amplifier", validator=_header)
    respect_robots: bool = False
    cache_seconds: float = attrs.field(default=300.0, validator=pause)
    max_results: int = attrs.field(default=5, validator=count)
    search_engine: EngineName | None = None
    api_key: Secret | None = None
    search_url: str | None = attrs.field(default=None, validator=valid_address)
    working_dir: str | None = None
    allowed_write_paths: tuple[str, ...] | None = None
    denied_write_paths: tuple[str, ...] = (GIT_FOLDER, *EXECUTED_NAMES)

    @property
    def policy(self) -> NetPolicy:
        """What may be fetched."""
        return NetPolicy(
            allowed_domains=tuple(map(DomainPattern.read, self.allowed_domains)),
            blocked_domains=tuple(map(DomainPattern.read, self.blocked_domains)),
            allowed_ports=self.allowed_ports,
            allowed_addresses=tuple(map(AddressRange.read, self.allowed_addresses)),
        )
