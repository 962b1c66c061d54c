"""The columns of the table: what guards a session, or displays it."""

from __future__ import annotations

from typing import Final

from tests.seams.columns import approval, bounds, registered, storage, trust, turns
from tests.seams.columns.guard import Guard

__all__ = ["GUARDS"]

GUARDS: Final[tuple[Guard, ...]] = (
    approval.Approval(),
    approval.DenyRule(),
    approval.DeniedTool(),
    approval.AllowedTool(),
    approval.DenyPaths(),
    approval.WeakenedProfile(),
    approval.DenyRuleSince(),
    approval.ToolRemovedSince(),
    approval.DefaultSession(),
    approval.BaseProfile(),
    approval.CommandEdit(),
    approval.CommandEditRule(),
    storage.Redaction(),
    bounds.Sandbox(),
    bounds.SessionCalls(),
    bounds.SessionTokens(),
    bounds.RecordedSpending(),
    bounds.TurnLimit(),
    bounds.TenantBudget(),
    trust.Untrusted(),
    trust.TrustedHooks(),
    trust.TrustChanged(),
    trust.AddedPlugin(),
    trust.AddedPluginChanged(),
    trust.TrustedFileEdit(),
    approval.ModuleGoneSince(),
    storage.Backup(),
    storage.CommandBackup(),
    storage.Logging(),
    turns.StreamingUi(),
    turns.Instructions(),
    turns.UntrustedInstructions(),
    turns.GivenSystem(),
    turns.TypedMention(),
    turns.ShownMedia(),
    turns.PipedMention(),
    turns.PipedSize(),
    turns.Provider(),
    turns.ChosenProvider(),
    turns.Agents(),
    turns.AgentSpending(),
    turns.Fallbacks(),
    turns.Telemetry(),
    registered.Handler(),
    registered.RegisteredPlugin(),
    registered.RegisteredRedactor(),
    registered.RegisteredCapability(),
    registered.Cancel(),
)
