"""Replacement rules of the providers: which changes of inputs are an update, and which a replacement."""
