"""What the providers accept: types of properties, and their documented constraints."""
