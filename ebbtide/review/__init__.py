"""Review of a recording: cost, quotas and scaling to zero.

The facts come from recorded resources and the dated tables of the catalog.
"""
