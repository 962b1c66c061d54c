"""The session of the original: the kernel's own, which takes the original's plans."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from anyio.abc import TaskGroup

from amplifier.compat.doubles import InstanceAttribute
from amplifier.compat.original.coordinator import ModuleCoordinator
from amplifier.compat.original.loader import ModuleLoader
from amplifier.compat.plans import accepted_plan
from amplifier.kernel.budgets.expenses import Spending
from amplifier.kernel.coordinator import ModuleCoordinator as KernelCoordinator
from amplifier.kernel.modules.loader import ModuleLoader as KernelLoader
from amplifier.kernel.sessions.session import AmplifierSession as KernelSession
from amplifier_sdk.contracts import ApprovalSystem, DisplaySystem
from amplifier_sdk.errors import TurnCancelled
from amplifier_sdk.limits import LimitChanges
from amplifier_sdk.media import Prompt

__all__ = ["AmplifierSession"]


class AmplifierSession(KernelSession):
    """One conversation with one set of modules; keys that no plan has here are left out and reported."""

    config: Mapping[str, object] = InstanceAttribute()  # type: ignore[assignment]  # instances have it
    coordinator: KernelCoordinator = InstanceAttribute()  # type: ignore[assignment]  # likewise
    initialized: bool = InstanceAttribute()  # type: ignore[assignment]
    is_resumed: bool = InstanceAttribute()  # type: ignore[assignment]
    loader: KernelLoader = InstanceAttribute()  # type: ignore[assignment]
    parent_id: str | None = InstanceAttribute()  # type: ignore[assignment]
    session_id: str = InstanceAttribute()  # type: ignore[assignment]

    def __init__(
        self,
        config: Mapping[str, object],
        loader: KernelLoader | None = None,
        session_id: str | None = None,
        parent_id: str | None = None,
        approval_system: ApprovalSystem | None = None,
        display_system: DisplaySystem | None = None,
        is_resumed: bool = False,
        task_group: TaskGroup | None = None,
        *,
        spent: Spending | None = None,
    ) -> None:
        super().__init__(
            accepted_plan(config),
            loader or ModuleLoader(),
            session_id,
            parent_id,
            approval_system,
            display_system,
            is_resumed,
            task_group,
            spent=spent,
        )
        # modules and applications find the very dict that the session was given
        self.config = self.coordinator.config = config
        # applications mount on it and register with it in the original's forms
        self.coordinator = ModuleCoordinator.over(self.coordinator)

    async def execute(  # type: ignore[override]  # the original's answer
        self, prompt: Prompt, *given: LimitChanges | None, **options: object
    ) -> object:
        """Run one turn and return its answer; of a turn that was cancelled by the token, what the model had written.

        With more than the prompt it is the session's own, which raises `TurnCancelled`: the kernel runs children so.
        """
        if given or options:
            return await super().execute(prompt, *given, **options)  # type: ignore[call-overload]  # passed on
        try:
            return await super().execute(prompt)
        except TurnCancelled as cancelled:
            return cancelled.partial_text

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        """Release everything, also of a session that was not entered."""
        answer = await super().__aexit__(kind, error, traceback)
        await self.cleanup()
        return answer
