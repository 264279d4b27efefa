"""Model of the cluster autoscaler on both clouds: its decisions on a snapshot of a cluster.

The rehearsal carries them out on a real API server, the replay in virtual time.
"""
