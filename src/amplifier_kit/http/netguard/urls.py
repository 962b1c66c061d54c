r"""Web addresses, read so strictly that nobody else can read another host out of them.

What browsers, libraries and servers read differently is refused and never repaired: user names, backslashes,
percent signs and control characters in the host, `127.1`, `0x7f000001` and `010.0.0.1`. What is left has one host, and
that host is what is looked up, checked and connected to.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, Literal, NoReturn, cast
from urllib.parse import quote, urljoin

import attrs

from amplifier_kit.http.netguard.addresses import Address
from amplifier_kit.http.netguard.errors import InvalidUrlError

__all__ = ["Scheme", "WebUrl", "address_of", "read_host", "read_url"]

Scheme = Literal["http", "https"]
"""The schemes that are fetched."""

_PORTS: Final = {"http": 80, "https": 443}
_MAX_CHARACTERS: Final = 8192
_ABSOLUTE: Final = re.compile(
    r"([A-Za-z][A-Za-z0-9+.-]*):(//)?([^/?#]*)([^?#]*)(\?[^#]*)?"
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BRACKETED: Final = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::([0-9]*))?", re.ASCII)
_NAMED: Final = re.compile(r"([^:\[\]]*)(?::([0-9]*))?", re.ASCII)
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_PATH_CHARACTERS: Final = "/%:@!$&'()*+,;=~-._"
_QUERY_CHARACTERS: Final = _PATH_CHARACTERS + "?"


@attrs.frozen(kw_only=True)
class WebUrl:
    """A web address.

    Args:
        scheme: `http` or `https`.
        host: a name in ASCII and lower case, without a dot at its end, or an IP address without brackets.
        port: the port, also where the text left it out.
        target: the path and the query, as they go over the wire.
    """

    scheme: Scheme
    host: str
    port: int
    target: str

    @property
    def address(self) -> Address | None:
        """The host as an IP address; `None` when it is a name."""
        return address_of(self.host)

    @property
    def authority(self) -> str:
        """The host, with its port where that is not the scheme's own: what goes into the header `Host`."""
        host = self.host
        if ":" in self.host:
            host = f"[{self.host}]"
        if self.port == _PORTS[self.scheme]:
            return host
        return f"{host}:{self.port}"

    def join(self, reference: str) -> WebUrl:
        """Read an address that stands in what was fetched from this one, such as a redirect's.

        Raises:
            InvalidUrlError: it leads to no web address.
        """
        text = reference.strip(" ")
        _refuse_odd_characters(text)
        if _SCHEME.match(text):
            return read_url(text)
        try:
            return read_url(urljoin(str(self), text))
        except ValueError as error:  # urljoin's own, for brackets that do not match
            raise InvalidUrlError(text, f"is no web address: {error}") from error

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def read_url(text: str) -> WebUrl:
    """Read a web address.

    What follows `#` is left out. In path and query, characters that addresses cannot hold are percent-encoded.

    Raises:
        InvalidUrlError: it is none, or could be read in two ways; says what to change.
    """
    url = text.strip(" ")
    _refuse_odd_characters(url)
    match = _ABSOLUTE.match(url)
    # without `//` some readers see a host in the path, and others none
    if match is None or not match[2]:
        raise InvalidUrlError(
            text, "is no web address; write it whole, as https://example.com/page"
        )
    scheme, _, authority, path, query = match.groups()
    if scheme.lower() not in _PORTS:
        raise InvalidUrlError(
            text, f"the scheme {scheme!r} is not fetched; only http and https are"
        )
    known = cast("Scheme", scheme.lower())
    host, port = _read_authority(text, authority)
    target = quote(path or "/", safe=_PATH_CHARACTERS) + (
        "?" + quote(query[1:], safe=_QUERY_CHARACTERS) if query else ""
    )
    return WebUrl(
        scheme=known,
        host=host,
        port=_PORTS[known] if port is None else port,
        target=target,
    )


def read_host(text: str) -> str:
    """Bring a host into the one form that hosts are compared in: ASCII, lower case, no dot at the end.

    Raises:
        ValueError: it is no name and no IP address in its ordinary form.
    """
    if ":" in text:
        try:
            address = IPv6Address(text)
        except AddressValueError as error:
            raise ValueError(f"is no IPv6 address: {error}") from error
        if address.scope_id is not None:
            raise ValueError("names an interface of this machine; leave the zone out")
        return str(address)
    # one form for all comparisons: a dot at the end names the same host
    name = (text.lower() if text.isascii() else _to_ascii(text)).removesuffix(".")
    # a last label that is a number makes the host an IPv4 address, as the URL
    # standard says; `0x7f.1` is one to some and a name to others
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        return _read_ipv4(name)
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValueError("the host is no name that the internet's directory can hold")
    return name


def address_of(host: str) -> Address | None:
    """Return the IP address that a host in its one form is; `None` when it is a name."""
    if ":" in host:
        return IPv6Address(host)
    if host.rpartition(".")[2].isdigit():
        return IPv4Address(host)
    return None


def _read_authority(text: str, authority: str) -> tuple[str, int | None]:
    def refuse(problem: str) -> NoReturn:
        raise InvalidUrlError(text, problem)

    # what stands before it looks like a host to people, and is none
    if "@" in authority:
        refuse("has a user name or password before the host; leave it out")
    if "%" in authority or " " in authority:
        refuse("the host holds a percent sign or a blank; write it plainly")
    match = _BRACKETED.fullmatch(authority) or _NAMED.fullmatch(authority)
    if match is None or not match[1]:
        refuse("has no host that can be read; write it as https://example.com/page")
    if authority.startswith("[") != (":" in match[1]):
        refuse("only IPv6 addresses stand in brackets")
    try:
        host = read_host(match[1])
    except ValueError as error:
        raise InvalidUrlError(text, str(error)) from error
    if not match[2]:
        return host, None
    # `int` takes quadratic time, and refuses more than some thousand digits
    port = 0
    if len(match[2]) <= 5:
        port = int(match[2])
    if not 0 < port < 65536:
        refuse("the port is a number from 1 to 65535")
    return host, port


def _refuse_odd_characters(url: str) -> None:
    if len(url) > _MAX_CHARACTERS:
        raise InvalidUrlError(
            url, f"has {len(url)} characters; at most {_MAX_CHARACTERS} are fetched"
        )
    if _CONTROL.search(url):
        raise InvalidUrlError(url, "holds a control character; take it out")
    if "\\" in url:
        raise InvalidUrlError(
            url, "holds a backslash, which is read in two ways; write / or %5C"
        )


def _to_ascii(name: str) -> str:
    import idna  # its tables are needed for names outside ASCII alone

    try:
        return idna.encode(name, uts46=True, std3_rules=True).decode("ascii").lower()
    except idna.IDNAError as error:
        raise ValueError(f"the host is no international name: {error}") from error


def _read_ipv4(name: str) -> str:
    try:
        return str(IPv4Address(name))
    except AddressValueError as error:
        raise ValueError(
            "the host is a number; write an IP address as four decimal numbers, as 93.184.216.34"
        ) from error
