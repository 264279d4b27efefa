"""What stacks and their work cost: list prices of recorded resources, and the record of measured costs."""
