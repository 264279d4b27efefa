"""A project's files: YAML as parsed by Pulumi, and source positions for errors."""
