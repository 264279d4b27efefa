"""The end of a stack: its destroy, and its lifetime."""
