"""Budgets: what may be spent, what was, and by when."""
