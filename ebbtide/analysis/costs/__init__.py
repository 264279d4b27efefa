"""Costs of stacks and their work: list prices of recorded resources, and the record of measured costs."""
