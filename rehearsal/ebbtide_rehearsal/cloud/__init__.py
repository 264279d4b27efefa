"""The fake cloud: one process with a provider for each package, and emulations behind them.

`store` is its state on disk, shared with the rehearsal's process; `protocol` serves Pulumi's provider
protocol; `gcp` and `azure` are the providers; `nodes` emulates node pools.
"""
