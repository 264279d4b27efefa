"""Review of a recording: cost, quotas and scaling to zero.

It reads recorded resources, and the dated tables of the catalog.
"""
