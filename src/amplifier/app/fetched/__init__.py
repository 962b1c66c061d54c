"""Folders that were fetched from elsewhere: noted in a lock file, and put in place all at once."""
