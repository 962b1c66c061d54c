"""An MCP server on standard input and output: one tool never answers, one answers at any length, one says it again.

    python stub_server.py MARK

The grandchild that `hang` starts, in a session of its own, has MARK in its command line.
"""

from __future__ import annotations

import json
import subprocess
import sys

TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string", "description": "What."}},
}
NUMBER = {
    "type": "object",
    "properties": {"bytes": {"type": "integer", "description": "How many."}},
}
TOOLS = [
    {"name": "echo", "description": "Say it again.", "inputSchema": TEXT},
    {"name": "hang", "description": "Never answer.", "inputSchema": {"type": "object"}},
    {"name": "long", "description": "Answer at length.", "inputSchema": NUMBER},
]


def answer(request: dict[str, object]) -> dict[str, object] | None:
    """Return the result of a request; `None` when it gets no answer."""
    params = request.get("params")
    assert params is None or isinstance(params, dict)
    match request.get("method"), params:
        case "initialize", {"protocolVersion": version}:
            info = {"name": "stub", "version": "1"}
            return {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
        case "tools/list", _:
            return {"tools": TOOLS}
        case "tools/call", {"name": "echo", "arguments": {"text": str(text)}}:
            return {"content": [{"type": "text", "text": text}]}
        case "tools/call", {"name": "long", "arguments": {"bytes": int(length)}}:
            return {"content": [{"type": "text", "text": "a" * length}]}
        case "tools/call", _:
            subprocess.Popen(["setsid", "sleep", sys.argv[1]], stdin=subprocess.DEVNULL)
            sys.stderr.write("hanging\n")
            sys.stderr.flush()
            return None
        case _:
            return {}


if __name__ == "__main__":
    for line in sys.stdin:
        asked = json.loads(line)
        result = answer(asked) if "id" in asked else None
        if result is not None:
            sys.stdout.write(
                json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result})
                + "\n"
            )
            sys.stdout.flush()
