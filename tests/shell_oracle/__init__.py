"""An oracle for the shell policy: what it lets run unasked is run, and every program and file is looked at."""
