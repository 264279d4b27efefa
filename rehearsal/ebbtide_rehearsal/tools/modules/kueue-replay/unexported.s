// Lets unexported.go declare functions without a body.
