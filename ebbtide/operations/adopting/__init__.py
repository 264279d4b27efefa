"""Adopting a cluster that exists: its resources as provider inputs, a declaration of them, the proof that
the declaration changes nothing else, and their way into a stack's state and out of it.
"""
