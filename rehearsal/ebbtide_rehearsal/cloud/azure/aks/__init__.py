"""AKS: clusters, and the node pools in them."""
