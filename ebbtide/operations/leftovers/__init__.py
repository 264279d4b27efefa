"""What exists and is in no state: the users', the cloud's and the stack's own."""
