"""Files of instructions: what every session in a folder begins with."""
