"""Clients of the Kubernetes API and the clouds' APIs, the only modules that use the network."""
