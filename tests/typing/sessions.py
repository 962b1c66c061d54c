"""What sessions take and give. Checked by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

from amplifier import AmplifierSession
from amplifier_sdk import ChildResult, Coordinator, Hooks, SessionSpawn, TurnFinished
from amplifier_sdk.delegation import ChildRecord, ChildStore, ChildResume


async def use(session: AmplifierSession, store: ChildStore) -> None:
    spawn: SessionSpawn = session.spawn
    resume: ChildResume = session.resume
    coordinator: Coordinator = session.coordinator
    hooks: Hooks = session.coordinator.hooks

    assert_type(await session.execute("go", {"tokens": 10, "cost_usd": "0.5"}), str)
    assert_type(await session.execute("go", output=int), int)
    assert_type(await session.execute("go", output=int | None), object)
    assert_type(session.last_turn, TurnFinished | None)
    assert_type(session.fork({}), AmplifierSession)
    assert_type(await spawn(agent_name="helper", instruction="go", limits={"iterations": 3}), ChildResult)
    assert_type(await resume(sub_session_id="c1", instruction="go"), ChildResult)
    assert_type(await store.load("c1"), ChildRecord | None)

    await session.execute("go", {"token": 10})  # error: call-overload
    await session.execute("go", {"tokens": "ten"})  # error: call-overload
    await session.spawn(agent_name="helper")  # error: call-arg
    await session.spawn(agent="helper", instruction="go")  # error: call-arg
    await spawn(agent_name="helper", instruction="go", hook_inheritance={"hooks": []})  # error: arg-type
