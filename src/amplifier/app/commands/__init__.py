"""What a person can tell a session besides prompts: commands of the chat, of modules, and of their own files."""
