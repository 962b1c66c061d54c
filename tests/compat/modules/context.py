"""A context as authors write it for the original."""

from amplifier_core import ModuleCoordinator

__amplifier_module_type__ = "context"


async def mount(coordinator: ModuleCoordinator, config=None):
    context = ListContext((config or {}).get("messages", []))
    await coordinator.mount("context", context)
    return context


class ListContext:
    def __init__(self, messages):
        self.messages = list(messages)
        self.budgets = []

    async def add_message(self, message):
        self.messages.append({**message, "timestamp": "now"})

    async def get_messages_for_request(self, token_budget=None, provider=None):
        if provider is not None:
            self.budgets.append(provider.get_info().defaults.get("context_window"))
        return list(self.messages)

    async def get_messages(self):
        return list(self.messages)

    async def set_messages(self, messages):
        self.messages = list(messages)

    async def clear(self):
        self.messages = []
