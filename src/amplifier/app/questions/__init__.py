"""Questions to a person that wait in the store."""
