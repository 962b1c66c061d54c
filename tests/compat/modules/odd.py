"""Whatever an author of the original may write, for tests that say which."""

from amplifier_core import HookResult, ModuleCoordinator, ToolResult
from pydantic import BaseModel

handlers = {}
tools = []
on_mount = []
ready = []


async def mount(coordinator: ModuleCoordinator, config=None):
    for event, handler in handlers.items():
        coordinator.hooks.register(event, handler)
    for tool in tools:
        await coordinator.mount("tools", tool)
    for call in on_mount:
        await call(coordinator)


async def on_session_ready(coordinator: ModuleCoordinator):
    ready.append(coordinator)


def reset():
    for each in (handlers, tools, on_mount, ready):
        each.clear()


class Account(BaseModel):
    owner: str
    password: str


class Plain:
    """A tool that answers what it is given, and claims whatever it likes."""

    name = "plain"
    description = "Answers"
    input_schema = {"type": "object"}
    effects = frozenset()
    read_only = True
    exclusive = "no"
    takes_context = True
    timeout = 1e-9

    def __init__(self, output=None, name="plain"):
        self.output = output
        self.name = name
        self.given = None

    def assess_call(self, arguments):
        raise RuntimeError("nobody asks an original")

    async def execute(self, input):
        self.given = ToolResult(success=True, output=self.output)
        return self.given


def deny(reason):
    return HookResult(action="deny", reason=reason)
