"""A provider as authors write it for the original: its answers are a subclass with fields of its own."""

from amplifier_core import (
    ConfigField,
    ModelInfo,
    ModuleCoordinator,
    ProviderInfo,
    TextContent,
    ToolCallContent,
)
from amplifier_core.message_models import (
    ChatRequest,
    ChatResponse,
    TextBlock,
    ToolCall,
    ToolCallBlock,
    Usage,
)

__amplifier_module_type__ = "provider"


class ScriptedChatResponse(ChatResponse):
    content_blocks: list | None = None
    text: str | None = None


async def mount(coordinator: ModuleCoordinator, config=None):
    provider = ScriptedProvider(config or {}, coordinator)
    await coordinator.mount("providers", provider, name="scripted-original")

    async def cleanup():
        provider.closed = True

    return cleanup


class ScriptedProvider:
    name = "scripted-original"
    last = None

    def __init__(self, config, coordinator):
        self.steps = list(config.get("steps", ["hello"]))
        self.coordinator = coordinator
        self.requests = []
        self.closed = False
        self.stream = True  # this vendor's own switch
        ScriptedProvider.last = self

    def get_info(self):
        return ProviderInfo(
            id=self.name,
            display_name="Scripted",
            credential_env_vars=["SCRIPTED_KEY"],
            capabilities=["tools"],
            defaults={"model": "m-1", "context_window": 100_000},
            config_fields=[
                ConfigField(
                    id="api_key",
                    display_name="Key",
                    field_type="secret",
                    prompt="Key?",
                )
            ],
        )

    async def list_models(self):
        return [
            ModelInfo(
                id="m-1",
                display_name="M 1",
                context_window=100_000,
                max_output_tokens=1_000,
            )
        ]

    async def complete(self, request: ChatRequest, **kwargs):
        self.requests.append(request)
        await self.coordinator.hooks.emit(
            "llm:request",
            {"provider": self.name, "message_count": len(request.messages)},
        )
        step = self.steps.pop(0)
        usage = Usage(input_tokens=10, output_tokens=2, total_tokens=12)
        if isinstance(step, dict):
            block = ToolCallBlock(id=step["id"], name=step["name"], input=step["input"])
            content = [block]
            call = ToolCall(id=block.id, name=block.name, arguments=block.input)
            return ScriptedChatResponse(
                content=content,
                tool_calls=[call],
                usage=usage,
                finish_reason="tool_use",
                content_blocks=[ToolCallContent(id=block.id, name=block.name)],
            )
        return ScriptedChatResponse(
            content=[TextBlock(text=step)],
            usage=usage,
            finish_reason="end_turn",
            content_blocks=[TextContent(text=step)],
            text=step,
        )

    def parse_tool_calls(self, response: ChatResponse):
        return response.tool_calls or []
