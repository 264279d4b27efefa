"""The stack of this repository: its configured cluster, deployed on the declared cloud, and its outputs."""
