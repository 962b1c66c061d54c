"""What several plugins share, each part imported by its own name and never by the root of the SDK."""
