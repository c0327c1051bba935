"""A host in trouble: full, read-only and slow disks, clocks that jump, suspension, no descriptors."""
