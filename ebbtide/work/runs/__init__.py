"""Runs of a folder of code on the cluster: what `ebbtide run` creates, follows and prints."""
