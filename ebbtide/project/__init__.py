"""A project's files: YAML as Pulumi reads it, and source positions for errors."""
