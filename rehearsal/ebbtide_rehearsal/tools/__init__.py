"""The programs, charts and manifests of a rehearsal: found on this machine, or downloaded or built once.

No binary is committed. A release is verified by its hash in `releases.csv`, and a build by the hashes of its
Go modules in `modules/*/go.sum`.
"""
