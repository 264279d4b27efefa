"""Work on a cluster: Jobs, sweeps, pipelines and runs, from the placement profile."""
