"""What people ask for, verb by verb, and how it is answered."""
