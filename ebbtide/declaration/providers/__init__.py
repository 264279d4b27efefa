"""Schemas of the providers: types of properties, and their documented constraints."""
