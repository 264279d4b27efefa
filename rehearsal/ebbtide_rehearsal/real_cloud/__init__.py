"""Comparison of a recording of a cloud's provider (`ebbtide up --record`) with what stands in for the cloud
here: the fake clouds, `noted.csv`, `read_back.csv` and the tables of answers."""
