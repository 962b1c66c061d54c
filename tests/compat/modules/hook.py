"""A hook as authors write it for the original."""

from amplifier_core import HookResult, ModuleCoordinator
from amplifier_core.events import PROVIDER_REQUEST, TOOL_POST, TOOL_PRE

__amplifier_module_type__ = "hook"


async def mount(coordinator: ModuleCoordinator, config=None):
    hook = Guard(config or {})
    coordinator.guard = hook
    handles = [
        coordinator.hooks.register(TOOL_PRE, hook.before, priority=5, name="guard"),
        coordinator.hooks.register(TOOL_POST, hook.after, name="guard-after"),
        coordinator.hooks.on(PROVIDER_REQUEST, hook.request),
    ]

    def cleanup():
        for unregister in handles:
            unregister()

    return cleanup


class Guard:
    def __init__(self, config):
        self.deny = config.get("deny")
        self.inject = config.get("inject")
        self.seen = []

    async def before(self, event, data):
        self.seen.append((event, data))
        if data["tool_name"] == self.deny:
            return HookResult(action="deny", reason="not here", metadata={"x": 1})
        data["tool_input"]["mine"] = "a copy"
        return HookResult(action="continue")

    async def after(self, event, data):
        self.seen.append((event, data))
        return {"action": "continue"}

    async def request(self, event, data):
        self.seen.append((event, data))
        if self.inject:
            return HookResult(
                action="inject_context",
                context_injection=self.inject,
                context_injection_role="user",
                ephemeral=True,
            )
        return HookResult()
