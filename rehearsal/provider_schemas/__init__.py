"""Generate the tables of the providers' schemas that the fake clouds enforce."""
