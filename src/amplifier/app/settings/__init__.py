"""What a person and a project set: files in scopes, merged by one rule, each value with its origin."""
