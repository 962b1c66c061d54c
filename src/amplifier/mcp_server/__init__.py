"""The Model Context Protocol, served: another agent uses this one's tools, agents, commands and sessions."""
