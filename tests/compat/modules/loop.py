"""A loop as authors write it for the original: it announces its steps and calls what it received."""

import json
import uuid

from amplifier_core import HookRegistry, ModuleCoordinator
from amplifier_core.events import (
    ORCHESTRATOR_COMPLETE,
    PROMPT_SUBMIT,
    PROVIDER_REQUEST,
    TOOL_ERROR,
    TOOL_POST,
    TOOL_PRE,
)
from amplifier_core.message_models import ChatRequest, Message, ToolSpec

__amplifier_module_type__ = "orchestrator"


async def mount(coordinator: ModuleCoordinator, config=None):
    config = config or {}
    await coordinator.mount("orchestrator", SimpleLoop(config))


class SimpleLoop:
    def __init__(self, config):
        self.max_iterations = config.get("max_iterations", -1)
        self.seen = []

    async def execute(
        self,
        prompt,
        context,
        providers,
        tools,
        hooks: HookRegistry,
        coordinator: ModuleCoordinator = None,
        **kwargs,
    ):
        result = await hooks.emit(PROMPT_SUBMIT, {"prompt": prompt})
        if coordinator:
            result = await coordinator.process_hook_result(
                result, PROMPT_SUBMIT, "orchestrator"
            )
        if result.action == "deny":
            return f"Operation denied: {result.reason}"
        await context.add_message({"role": "user", "content": prompt})
        name, provider = next(iter(providers.items()))
        if hasattr(provider, "stream"):
            raise RuntimeError("a loop of the original streams otherwise")
        iteration, final = 0, ""
        while self.max_iterations < 0 or iteration < self.max_iterations:
            if coordinator and coordinator.cancellation.is_cancelled:
                break
            iteration += 1
            result = await hooks.emit(
                PROVIDER_REQUEST, {"provider": name, "iteration": iteration}
            )
            if coordinator:
                result = await coordinator.process_hook_result(
                    result, PROVIDER_REQUEST, "orchestrator"
                )
            if result.action == "deny":
                return f"Operation denied: {result.reason}"
            messages = await context.get_messages_for_request(provider=provider)
            messages = list(messages)
            if (
                result.action == "inject_context"
                and result.ephemeral
                and result.context_injection
            ):
                messages.append(
                    {
                        "role": result.context_injection_role,
                        "content": result.context_injection,
                    }
                )
            request = ChatRequest(
                messages=[Message(**message) for message in messages],
                tools=[
                    ToolSpec(
                        name=tool.name,
                        description=tool.description,
                        parameters=tool.input_schema,
                    )
                    for tool in tools.values()
                ],
            )
            response = await provider.complete(request, extended_thinking=False)
            self.seen.append(response)
            calls = provider.parse_tool_calls(response)
            content = [
                block.model_dump() if hasattr(block, "model_dump") else block
                for block in response.content
            ]
            message = {"role": "assistant", "content": content}
            if calls:
                message["tool_calls"] = [
                    {"id": call.id, "tool": call.name, "arguments": call.arguments}
                    for call in calls
                ]
            await context.add_message(message)
            if not calls:
                final = "".join(
                    block.text for block in response.content if block.type == "text"
                )
                break
            group = str(uuid.uuid4())
            for call in calls:
                text = await self.run_tool(call, tools, hooks, coordinator, group)
                await context.add_message(
                    {"role": "tool", "tool_call_id": call.id, "content": text}
                )
        await hooks.emit(
            ORCHESTRATOR_COMPLETE,
            {"orchestrator": "simple", "turn_count": iteration, "status": "success"},
        )
        return final

    async def run_tool(self, call, tools, hooks, coordinator, group):
        tool = tools.get(call.name)
        if tool is None:
            return f"Error: Tool '{call.name}' not found"
        data = {
            "tool_name": call.name,
            "tool_input": call.arguments,
            "tool_call_id": call.id,
            "parallel_group_id": group,
        }
        decided = await hooks.emit(TOOL_PRE, data)
        if coordinator:
            decided = await coordinator.process_hook_result(
                decided, TOOL_PRE, call.name
            )
        if decided.action == "deny":
            return f"Denied by hook: {decided.reason}"
        try:
            result = await tool.execute(call.arguments)
        except Exception as error:
            await hooks.emit(
                TOOL_ERROR,
                {**data, "error": {"type": type(error).__name__, "msg": str(error)}},
            )
            return f"Error executing tool: {error}"
        posted = await hooks.emit(TOOL_POST, {**data, "result": result})
        if coordinator:
            await coordinator.process_hook_result(posted, TOOL_POST, call.name)
        changed = (posted.data or {}).get("result")
        if changed is not None and changed is not result:
            return changed if isinstance(changed, str) else json.dumps(str(changed))
        return result.get_serialized_output()
