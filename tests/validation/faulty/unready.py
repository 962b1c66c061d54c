"""A module whose `on_session_ready` fails."""

from __future__ import annotations

from collections.abc import Mapping

from amplifier_sdk import Coordinator
from amplifier_sdk.jsontypes import JSONValue
from tests.validation.behaviors.sound import Echo


async def mount(coordinator: Coordinator, config: Mapping[str, JSONValue]) -> object:
    return Echo()


async def on_session_ready(coordinator: Coordinator) -> None:
    raise OSError("not ready")
