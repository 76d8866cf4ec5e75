"""What a gate must see before it lets a node through, and what its readings say of that. Pure."""
