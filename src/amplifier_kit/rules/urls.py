"""Patterns of hosts, compared label by label."""

from __future__ import annotations

from amplifier_kit.http.netguard.errors import WebError
from amplifier_kit.http.netguard.policies import DomainPattern
from amplifier_kit.http.netguard.urls import read_url
from amplifier_kit.rules.truth import Truth
from amplifier_sdk.jsontypes import JSONValue

__all__ = ["host_truth"]


def host_truth(pattern: str, value: JSONValue) -> Truth:
    """Tell whether a web address's host is the pattern's domain or below it.

    An address that could be read in two ways may be.

    Args:
        pattern: `example.com`, or `*.example.com` for what is below it alone.
        value: the address.
    """
    if not isinstance(value, str):
        return Truth.MAYBE
    try:
        return Truth.of(DomainPattern.read(pattern).matches(read_url(value)))
    except WebError:
        return Truth.MAYBE
