"""The offline preview of a stack: its files read, its recording read back, and shown.

Nothing is imported here, so that a part can be had without the rest.
"""
