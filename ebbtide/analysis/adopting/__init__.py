"""Adopting a cluster that exists: its resources as provider inputs, a declaration of them, and the proof that
the declaration changes nothing else.
"""
