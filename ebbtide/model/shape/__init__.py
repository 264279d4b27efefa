"""A declaration that does not have the shape of one.

Which location is meant, what is wrong with it in the declaration's own words, and what of the rest can still
be held to the rules.
"""
