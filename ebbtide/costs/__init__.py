"""The record of what work and nodes have cost: the program that writes it, and its sums."""
