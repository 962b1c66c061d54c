"""The chat: what is typed at a terminal becomes turns of one session, and is shown as it happens."""
