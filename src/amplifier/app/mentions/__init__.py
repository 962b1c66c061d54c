"""Mentions: `@notes.md` in a prompt, a profile or a file stands for what that file holds."""
