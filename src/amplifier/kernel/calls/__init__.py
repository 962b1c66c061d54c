"""Calls: the one provider call and the one tool call, with all that each of them owes."""
