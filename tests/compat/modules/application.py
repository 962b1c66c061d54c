"""An application as authors write it on the original: bundles that are loaded, composed and prepared, and sessions of them."""

import uuid
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from amplifier_core import AmplifierSession
from amplifier_core.approval import ApprovalTimeoutError
from amplifier_core.models import HookResult
from amplifier_core.module_sources import ModuleNotFoundError


def deep_merge(base, over):
    merged = dict(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = deep_merge(merged[key], value)
        else:
            merged[key] = value
    return merged


def merge_lists(base, over):
    found = {entry["module"]: entry for entry in base}
    for entry in over:
        known = found.get(entry["module"], {})
        found[entry["module"]] = deep_merge(known, entry)
    return list(found.values())


@dataclass
class Bundle:
    name: str
    base_path: Path
    session: dict = field(default_factory=dict)
    providers: list = field(default_factory=list)
    tools: list = field(default_factory=list)
    hooks: list = field(default_factory=list)
    agents: dict = field(default_factory=dict)
    context: dict = field(default_factory=dict)
    spawn: dict = field(default_factory=dict)
    instruction: str = ""

    def compose(self, *others):
        result = self
        for other in others:
            result = Bundle(
                name=other.name,
                base_path=other.base_path,
                session=deep_merge(result.session, other.session),
                providers=merge_lists(result.providers, other.providers),
                tools=merge_lists(result.tools, other.tools),
                hooks=merge_lists(result.hooks, other.hooks),
                agents={**result.agents, **other.agents},
                context={**result.context, **other.context},
                spawn={**result.spawn, **other.spawn},
                instruction=other.instruction or result.instruction,
            )
        return result

    def to_mount_plan(self):
        plan = {"session": self.session}
        for section in ("providers", "tools", "hooks", "agents", "spawn"):
            if getattr(self, section):
                plan[section] = getattr(self, section)
        return plan

    async def prepare(self, install_deps=False, source_resolver=None):
        paths = {}
        for section in ("providers", "tools", "hooks"):
            for entry in getattr(self, section):
                paths[entry["module"]] = entry.get("source")
        for name in ("orchestrator", "context"):
            entry = self.session[name]
            paths[entry["module"]] = entry.get("source")
        resolver = BundleModuleResolver(
            {
                name: (self.base_path / source).resolve()
                for name, source in paths.items()
                if source
            }
        )
        return PreparedBundle(self.to_mount_plan(), resolver, self)


class BundleModuleSource:
    def __init__(self, path):
        self.path = path

    def resolve(self):
        return self.path


class BundleModuleResolver:
    def __init__(self, paths):
        self.paths = paths
        self.asked = []

    def resolve(self, module_id, source_hint=None, profile_hint=None):
        self.asked.append((module_id, source_hint))
        if module_id not in self.paths:
            raise ModuleNotFoundError(
                f"Module '{module_id}' is not in the prepared bundle"
            )
        return BundleModuleSource(self.paths[module_id])

    async def async_resolve(self, module_id, source_hint=None, profile_hint=None):
        return self.resolve(module_id, source_hint, profile_hint)


@dataclass
class PreparedBundle:
    mount_plan: dict
    resolver: BundleModuleResolver
    bundle: Bundle
    bundle_package_paths: list = field(default_factory=list)

    def system_prompt_factory(self, session):
        async def factory():
            parts = [self.bundle.instruction]
            for name, file in self.bundle.context.items():
                path = self.bundle.base_path / file
                if path.exists():
                    parts.append(
                        f'<context_file paths="@{name}">\n{path.read_text()}\n</context_file>'
                    )
            cwd = session.coordinator.get_capability("session.working_dir")
            parts.append(f"Working directory: {cwd}")
            return "\n\n".join(part for part in parts if part)

        return factory

    async def create_session(
        self,
        session_id=None,
        parent_id=None,
        approval_system=None,
        display_system=None,
        session_cwd=None,
        is_resumed=False,
    ):
        session = AmplifierSession(
            self.mount_plan,
            session_id=session_id,
            parent_id=parent_id,
            approval_system=approval_system,
            display_system=display_system,
            is_resumed=is_resumed,
        )
        await session.coordinator.mount("module-source-resolver", self.resolver)
        session.coordinator.register_capability(
            "session.working_dir", str((session_cwd or Path.cwd()).resolve())
        )
        session.coordinator.register_capability(
            "bundle_package_paths", list(self.bundle_package_paths)
        )
        await session.initialize()
        context = session.coordinator.get("context")
        factory = self.system_prompt_factory(session)
        if context and hasattr(context, "set_system_prompt_factory"):
            await context.set_system_prompt_factory(factory)
        elif context:
            await context.add_message({"role": "system", "content": await factory()})
        return session

    async def spawn(
        self,
        child_bundle,
        instruction,
        *,
        parent_session,
        session_id=None,
        inherit_providers=True,
        parent_messages=None,
        orchestrator_config=None,
        self_delegation_depth=0,
        session_cwd=None,
    ):
        plan = child_bundle.to_mount_plan()
        if inherit_providers and "providers" not in plan:
            plan["providers"] = list(parent_session.config["providers"])
        if "session" not in plan or not plan["session"]:
            plan["session"] = dict(parent_session.config["session"])
        if orchestrator_config:
            plan.setdefault("orchestrator", {})["config"] = orchestrator_config
        coordinator = parent_session.coordinator
        child = AmplifierSession(
            plan,
            session_id=session_id,
            parent_id=parent_session.session_id,
            approval_system=coordinator.approval_system,
            display_system=coordinator.display_system,
        )
        await child.coordinator.mount(
            "module-source-resolver", coordinator.get("module-source-resolver")
        )
        cwd = coordinator.get_capability("session.working_dir")
        child.coordinator.register_capability(
            "session.working_dir", str(session_cwd or cwd)
        )
        child.coordinator.register_capability(
            "self_delegation_depth", self_delegation_depth
        )
        await child.initialize()
        context = child.coordinator.get("context")
        if parent_messages and hasattr(context, "set_messages"):
            await context.set_messages(parent_messages)
        if child_bundle.instruction and hasattr(context, "set_system_prompt_factory"):

            async def factory():
                return child_bundle.instruction

            await context.set_system_prompt_factory(factory)
        captured = {}

        async def on_complete(event, data):
            captured.update(data)
            return HookResult()

        unregister = child.coordinator.hooks.register(
            "orchestrator:complete", on_complete, priority=999, name="_spawn_capture"
        )
        coordinator.cancellation.register_child(child.coordinator.cancellation)
        try:
            output = await child.execute(instruction)
            cost = await child.coordinator.collect_contributions("session.cost")
        finally:
            unregister()
            coordinator.cancellation.unregister_child(child.coordinator.cancellation)
            await child.cleanup()
        return {
            "output": output,
            "session_id": child.session_id,
            "status": captured.get("status", "success"),
            "turn_count": captured.get("turn_count", 1),
            "metadata": captured.get("metadata", {}),
            "cost": cost,
        }


async def load_bundle(path):
    path = Path(path)
    text = path.read_text()
    _, head, body = text.split("---\n", 2)
    data = yaml.safe_load(head)
    bundle = Bundle(
        name=data["bundle"]["name"],
        base_path=path.parent,
        instruction=body.strip(),
        context={
            Path(name).name: name for name in data.get("context", {}).get("include", [])
        },
        **{
            key: data[key]
            for key in ("session", "providers", "tools", "hooks", "agents", "spawn")
            if key in data
        },
    )
    included = [
        await load_bundle(path.parent / entry["bundle"])
        for entry in data.get("includes", [])
    ]
    if not included:
        return bundle
    return included[0].compose(*included[1:], bundle)


class Screen:
    def __init__(self):
        self.lines = []
        self.depth = 0

    def show_message(self, message, level, source="hook"):
        self.lines.append((self.depth, level, message, source))

    def push_nesting(self):
        self.depth += 1

    def pop_nesting(self):
        self.depth -= 1


class Person:
    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    async def request_approval(self, prompt, options, timeout, default):
        self.asked.append((prompt, options, timeout, default))
        if self.answer is None:
            raise ApprovalTimeoutError("nobody answered")
        return self.answer


def new_id(parent, agent):
    return f"{parent}-{uuid.uuid4().hex[:16]}_{agent}"
