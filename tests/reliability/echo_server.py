"""An MCP server on standard input and output whose tools and answers say what a file says.

    python echo_server.py FILE

FILE holds a list of texts as JSON. There is one tool for each, described by it, whose answer it is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def answer(request: dict[str, object], texts: list[str]) -> dict[str, object]:
    """Return the result of a request."""
    params = request.get("params")
    assert params is None or isinstance(params, dict)
    match request.get("method"):
        case "initialize":
            assert params is not None
            info = {"name": "echo", "version": "1"}
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
        case "tools/list":
            schema = {"type": "object"}
            tools = [
                {"name": f"say{n}", "description": text, "inputSchema": schema}
                for n, text in enumerate(texts)
            ]
            return {"tools": tools}
        case "tools/call":
            assert params is not None
            return {
                "content": [
                    {
                        "type": "text",
                        "text": texts[int(str(params["name"]).removeprefix("say"))],
                    }
                ]
            }
        case _:
            return {}


if __name__ == "__main__":
    said: list[str] = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            reply = {"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked, said)}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()
