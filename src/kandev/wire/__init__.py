"""What crosses a process border: the shapes of JSON documents, and nothing that acts."""
