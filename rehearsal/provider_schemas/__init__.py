"""Generate the tables of the providers' schemas that the review and the fake clouds read."""
