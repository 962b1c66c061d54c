"""One turn: the object that is made for it, the caller of providers, the runner of tools, and steering."""
