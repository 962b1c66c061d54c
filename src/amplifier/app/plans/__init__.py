"""Mount plans of what is installed, with the rules and restrictions that a session adds."""
