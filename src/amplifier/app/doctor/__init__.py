"""What keeps Amplifier from working here, and what helps: one finding for each thing that is looked at."""
