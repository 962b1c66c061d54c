"""Sessions as an application opens them: what they are made of, what guards them, which of them is meant."""
