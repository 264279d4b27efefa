"""AKS: clusters and their node pools."""
