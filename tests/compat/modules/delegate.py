"""A tool as authors write it for the original: it has the application run an agent of the plan."""

from amplifier_core import ModuleCoordinator, ToolResult
from amplifier_core.models import HookResult

__amplifier_module_type__ = "tool"


async def mount(coordinator: ModuleCoordinator, config=None):
    tool = DelegateTool(coordinator, config or {})
    await coordinator.mount("tools", tool, name=tool.name)
    coordinator.register_contributor(
        "observability.events", "tool-delegate", lambda: ["delegate:agent_spawned"]
    )
    coordinator.register_contributor("session.cost", "tool-delegate", tool.cost)
    return {"name": "tool-delegate", "version": "1.0.0", "provides": ["delegate"]}


class DelegateTool:
    name = "delegate"

    def __init__(self, coordinator, config):
        self.coordinator = coordinator
        self.config = config

    @property
    def description(self):
        agents = self.coordinator.config.get("agents", {})
        listed = [f"{name}: {agent['description']}" for name, agent in agents.items()]
        return "Has an agent do the work. " + " ".join(listed)

    @property
    def input_schema(self):
        return {
            "type": "object",
            "properties": {
                "agent": {"type": "string"},
                "instruction": {"type": "string"},
            },
            "required": ["agent", "instruction"],
        }

    def cost(self):
        return None

    async def execute(self, input):
        agents = self.coordinator.config.get("agents", {})
        agent = input.get("agent", "")
        if agent not in agents:
            return ToolResult(
                success=False, error={"message": f"Agent '{agent}' not found"}
            )
        spawn = self.coordinator.get_capability("session.spawn")
        if spawn is None:
            return ToolResult(success=False, error={"message": "cannot spawn"})
        depth = self.coordinator.get_capability("self_delegation_depth") or 0
        session_id = f"{self.coordinator.session_id}-{agent}"
        result = await self.coordinator.hooks.emit(
            "delegate:agent_spawned", {"agent": agent, "sub_session_id": session_id}
        )
        if isinstance(result, HookResult) and result.action == "deny":
            return ToolResult(success=False, error={"message": result.reason})
        messages = await self.coordinator.get("context").get_messages()
        done = await spawn(
            agent_name=agent,
            instruction=input["instruction"],
            parent_session=self.coordinator.session,
            agent_configs=agents,
            sub_session_id=session_id,
            tool_inheritance={"exclude_tools": ["tool-delegate-original"]},
            hook_inheritance={},
            orchestrator_config=None,
            provider_preferences=None,
            self_delegation_depth=depth + 1,
            parent_messages=[m for m in messages if m.get("role") == "user"],
        )
        return ToolResult(
            success=True,
            output={
                "response": done["output"],
                "session_id": done["session_id"],
                "agent": agent,
            },
        )
