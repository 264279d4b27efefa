"""Resources and objects that exist but are in no state: users', the cloud's and the stack's own."""
