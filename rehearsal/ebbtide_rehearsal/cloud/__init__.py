"""The stand-in cloud: one process with a provider of each kind for the engine, and what they make behind it.

`store` is what it knows, on disk, shared with whoever runs the rehearsal; `protocol` is how the engine talks
to it; `gcp`, `azure` and `kubernetes` are the providers; `nodes` is what happens in node pools.
"""
