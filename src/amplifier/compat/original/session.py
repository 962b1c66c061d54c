"""The session of the original: the kernel's own, which takes the original's plans."""

from __future__ import annotations

from collections.abc import Mapping

from anyio.abc import TaskGroup

from amplifier.compat.original.coordinator import ModuleCoordinator
from amplifier.compat.plans import accepted_plan
from amplifier.kernel.budgets.expenses import Spending
from amplifier.kernel.coordinator import ModuleCoordinator as KernelCoordinator
from amplifier.kernel.modules.loader import ModuleLoader
from amplifier.kernel.sessions.session import AmplifierSession as KernelSession
from amplifier_sdk.contracts import ApprovalSystem, DisplaySystem

__all__ = ["AmplifierSession"]


class AmplifierSession(KernelSession):
    """One conversation with one set of modules; keys that no plan has here are left out and reported."""

    def __init__(
        self,
        config: Mapping[str, object],
        loader: ModuleLoader | None = None,
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
            loader,
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
        self.coordinator: KernelCoordinator = ModuleCoordinator.over(self.coordinator)
