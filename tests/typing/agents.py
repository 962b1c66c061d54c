"""What an `Agent` infers and refuses. Checked by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

import attrs

from amplifier import Agent, AgentResult
from amplifier.testing import AutoModel
from amplifier_kit.scripted import ScriptedProvider
from amplifier_sdk import RunContext, tool


@attrs.frozen
class Invoice:
    total: float


class Bank:
    def balance(self, account: str) -> int:
        return len(account)


class Shop:
    pass


@tool
def balance(ctx: RunContext[Bank], account: str) -> int:
    """Say what is on an account."""
    return ctx.deps.balance(account)


@tool(name="stock")
async def stock(ctx: RunContext[Shop], article: str) -> int:
    """Say how much there is of an article."""
    return len(article)


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def plain(number: int) -> int:
    """Leave a number as it is."""
    return number


def brief(ctx: RunContext[Bank]) -> str:
    return "Be brief."


def check(ctx: RunContext[Bank], invoice: Invoice) -> Invoice:
    return invoice


async def store(total: float) -> Invoice:
    """Store an invoice."""
    return Invoice(total)


async def run() -> None:
    assert_type((await Agent("local").run("?")).output, str)
    assert_type((await Agent(ScriptedProvider("!")).run("?")).output, str)
    assert_type((await Agent(AutoModel(), output=int).run("?")).output, int)
    assert_type((await Agent("local", output=Invoice).run("?")).output, Invoice)
    assert_type((await Agent("local", output=plain).run("?")).output, int)
    assert_type((await Agent("local", output=store).run("?")).output, Invoice)
    assert_type((await Agent("local", output=list[int]).run("?")).output, list[int])
    async with Agent(output=Invoice).session() as session:
        assert_type(await session.run("?"), AgentResult[Invoice])
    async with Agent(output=Invoice).stream("?") as events:
        assert_type(events.result.output, Invoice)


bank = Agent("local", tools=[balance, double, plain], deps=Bank(), instructions=brief)
assert_type(bank, Agent[Bank, str])
checked = Agent(
    "local", deps=Bank(), output=Invoice, output_validators=[check], tools=[bank]
)
assert_type(checked.run_sync("?").output, Invoice)
bank.run_sync("?", deps=Bank())



@checked.output_validator
async def stored(ctx: RunContext[Bank], invoice: Invoice) -> Invoice:
    return invoice


@checked.output_validator  # error: arg-type
def of_another(ctx: RunContext[Shop], invoice: Invoice) -> Invoice:
    return invoice


Agent[Bank, str]("local", tools=[stock])  # error: list-item
bank.run_sync("?", deps=Shop())  # error: arg-type
