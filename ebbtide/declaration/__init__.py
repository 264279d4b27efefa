"""Declarations: facts about the clouds, the fields with their rules, and the files of a project."""
