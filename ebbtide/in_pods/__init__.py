"""Programs and libraries that run in pods, with the standard library alone."""
