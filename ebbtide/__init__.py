"""Ebbtide: ML clusters on GKE and AKS, declared once, with everything else derived from the declaration."""

__version__ = "0.1.0"
