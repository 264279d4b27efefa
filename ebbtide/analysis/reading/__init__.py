"""Facts derived from recorded resources, independently of the declaration.

Cost, quotas and policy describe real resources, so they read recordings. Provider field names are data, in
one module per cloud.
"""
