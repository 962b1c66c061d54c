"""What a project brings along, and how much of it may be used."""
