"""Opens and follows tickets for the people who repair nodes."""
