"""What the documentation says is what the program does: generated parts, lists, links, coverage."""
