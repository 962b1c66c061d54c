"""MCP servers as a person declares and checks them, by `amplifier mcp`."""
