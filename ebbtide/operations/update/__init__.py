"""Updates of a stack: what changes, and pools that are replaced without ending work."""
