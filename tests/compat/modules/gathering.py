"""A loop as authors write it for the original with asyncio: all calls of an answer run at once."""

import asyncio
import json
import uuid

from amplifier_core import ModuleCoordinator
from amplifier_core.events import (
    EXECUTION_END,
    EXECUTION_START,
    PROMPT_SUBMIT,
    PROVIDER_REQUEST,
    TOOL_ERROR,
    TOOL_POST,
    TOOL_PRE,
)
from amplifier_core.llm_errors import LLMError
from amplifier_core.message_models import ChatRequest, Message, ToolSpec

__amplifier_module_type__ = "orchestrator"


async def mount(coordinator: ModuleCoordinator, config=None):
    await coordinator.mount("orchestrator", GatheringLoop(config or {}))
    return None


class GatheringLoop:
    def __init__(self, config):
        self.config = config

    async def execute(
        self, prompt, context, providers, tools, hooks, coordinator=None, **kwargs
    ):
        await hooks.emit(EXECUTION_START, {"prompt": prompt})
        result = await coordinator.process_hook_result(
            await hooks.emit(PROMPT_SUBMIT, {"prompt": prompt}),
            PROMPT_SUBMIT,
            "orchestrator",
        )
        if result.action == "deny":
            return f"Operation denied: {result.reason}"
        await context.add_message({"role": "user", "content": prompt})
        name, provider = min(
            providers.items(), key=lambda item: getattr(item[1], "priority", 100)
        )
        status, final, iteration = "completed", "", 0
        try:
            while True:
                iteration += 1
                await hooks.emit(
                    PROVIDER_REQUEST, {"provider": name, "iteration": iteration}
                )
                messages = await context.get_messages_for_request(provider=provider)
                request = ChatRequest(
                    messages=[Message(**message) for message in messages],
                    tools=[
                        ToolSpec(
                            name=t.name,
                            description=t.description,
                            parameters=getattr(t, "input_schema", {}),
                        )
                        for t in tools.values()
                    ],
                )
                try:
                    response = await provider.complete(request)
                except LLMError as error:
                    await hooks.emit(
                        "provider:error",
                        {
                            "provider": name,
                            "error": {"type": type(error).__name__, "msg": str(error)},
                            "retryable": error.retryable,
                            "status_code": error.status_code,
                        },
                    )
                    raise
                calls = provider.parse_tool_calls(response)
                text = "".join(
                    b.text for b in response.content if getattr(b, "type", "") == "text"
                )
                if not calls:
                    final = text
                    await context.add_message({"role": "assistant", "content": text})
                    return final
                await context.add_message(
                    {
                        "role": "assistant",
                        "content": [b.model_dump() for b in response.content],
                        "tool_calls": [
                            {"id": c.id, "tool": c.name, "arguments": c.arguments}
                            for c in calls
                        ],
                    }
                )
                group = str(uuid.uuid4())
                try:
                    done = await asyncio.gather(
                        *(self.one(c, tools, hooks, coordinator, group) for c in calls)
                    )
                except asyncio.CancelledError:
                    for call in calls:
                        await context.add_message(
                            {
                                "role": "tool",
                                "tool_call_id": call.id,
                                "content": json.dumps({"cancelled": True}),
                            }
                        )
                    status = "cancelled"
                    raise
                for call_id, content in done:
                    await context.add_message(
                        {"role": "tool", "tool_call_id": call_id, "content": content}
                    )
                if coordinator.cancellation.is_cancelled:
                    status = "cancelled"
                    return final
        finally:
            await hooks.emit(EXECUTION_END, {"response": final, "status": status})

    async def one(self, call, tools, hooks, coordinator, group):
        data = {
            "tool_name": call.name,
            "tool_call_id": call.id,
            "tool_input": call.arguments,
            "parallel_group_id": group,
        }
        decided = await coordinator.process_hook_result(
            await hooks.emit(TOOL_PRE, data), TOOL_PRE, call.name
        )
        if decided.action == "deny":
            return call.id, f"Denied by hook: {decided.reason}"
        tool = tools.get(call.name)
        if tool is None:
            return call.id, f"Error: Tool '{call.name}' not found"
        coordinator.cancellation.register_tool_start(call.id, call.name)
        try:
            result = await tool.execute(call.arguments)
        except Exception as error:
            await hooks.emit(
                TOOL_ERROR, {**data, "error": {"type": "x", "msg": str(error)}}
            )
            return call.id, f"Error executing tool: {error}"
        finally:
            coordinator.cancellation.register_tool_complete(call.id)
        await coordinator.process_hook_result(
            await hooks.emit(TOOL_POST, {**data, "result": result}),
            TOOL_POST,
            call.name,
        )
        return call.id, result.get_serialized_output()
