"""From JSON to values: the schema of an annotation, and what reads its values.

`shapes` holds the table from annotations to schema and reader. Signatures become tools in `schema`, configurations
are loaded by `loaders`, and `problems` words what is wrong with a value.
"""
