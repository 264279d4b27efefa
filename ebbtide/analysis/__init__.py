"""Analysis of a program, without the network: its recording, preview, costs, quotas, policy and review."""
