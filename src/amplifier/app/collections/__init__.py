"""Collections: folders of profiles, agents, context files and modules that are shared under a name."""
