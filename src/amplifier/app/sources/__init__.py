"""Where modules and collections come from: folders, repositories, packages, and what of them is cached."""
