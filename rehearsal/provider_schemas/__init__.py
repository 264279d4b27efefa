"""Generator of the tables from provider schemas that the review and the fake clouds read."""
