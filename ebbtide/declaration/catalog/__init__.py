"""Facts about the clouds, in dated data files with a source in every row, and their lookup.

The data files are in `data/`: `machines.csv`, `attachable.csv`, `prices.csv`, `quotas.csv`,
`ephemeral.csv`, `footprints.csv`, `kubernetes_versions.csv`, `local_ssds.csv`, `locations.csv`,
`machine_series.csv`, `offerings.csv`, `partitions.csv`, `retirements.csv`, `tpu_topologies.csv`. Fix a wrong
fact there; no code contains one.
"""
