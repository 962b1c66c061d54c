"""What prevents Amplifier from working here, and what helps: one finding for each check."""
