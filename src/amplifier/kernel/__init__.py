"""The kernel: mechanism without policy. It knows no file format, no terminal, no profile, no vendor."""
