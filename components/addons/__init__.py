"""Everything that is installed on a cluster, the same on both clouds."""
