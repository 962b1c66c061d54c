"""Sessions: mounted from a plan, their turns, their children, and what they are doing."""
