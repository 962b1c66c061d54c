"""LangGraph: a graph of a model and a tool, and its PostgreSQL saver, with a checkpoint behind each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from uuid import uuid4

from langchain_core.messages import (  # type: ignore[import-not-found]  # it is installed in an environment of its own
    AIMessage,
    ToolMessage,
)
from langgraph.checkpoint.postgres import PostgresSaver  # type: ignore[import-not-found]  # likewise
from langgraph.graph import (  # type: ignore[import-not-found]  # likewise
    END,
    START,
    MessagesState,
    StateGraph,
)
from langgraph.pregel import Pregel  # type: ignore[import-not-found]  # likewise

from benchmarks.durable.samples import answer_samples

__all__: list[str] = []


def graph_of(steps: int, saver: PostgresSaver) -> Pregel:
    """Return the graph of a turn of so many steps."""

    def model(state: MessagesState) -> dict[str, object]:
        step = sum(isinstance(each, AIMessage) for each in state["messages"])
        if step == steps:
            return {"messages": [AIMessage("Done.")]}
        call = {"name": "noop", "args": {"step": step}, "id": uuid4().hex}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    def tool(state: MessagesState) -> dict[str, object]:
        (call,) = state["messages"][-1].tool_calls
        result = f"done {call['args']['step']}"
        return {"messages": [ToolMessage(result, tool_call_id=call["id"])]}

    def after_model(state: MessagesState) -> str:
        return "tool" if state["messages"][-1].tool_calls else END

    graph = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tool", tool)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", after_model, ["tool", END])
    graph.add_edge("tool", "model")
    return graph.compile(checkpointer=saver)


def sampler(saver: PostgresSaver) -> Callable[[int], float]:
    """Return what runs a turn and says how long it took."""

    def sample(steps: int) -> float:
        compiled = graph_of(steps, saver)
        config = {
            "configurable": {"thread_id": uuid4().hex},
            "recursion_limit": 2 * steps + 10,
        }
        begun = perf_counter()
        state = compiled.invoke(
            {"messages": [("user", "Go")]}, config, durability="sync"
        )
        if state["messages"][-1].content != "Done.":
            raise RuntimeError("the graph did not finish")
        return perf_counter() - begun

    return sample


if __name__ == "__main__":
    with PostgresSaver.from_conn_string(sys.argv[1]) as opened:
        opened.setup()
        answer_samples(sampler(opened))
