"""What one can ask Kandev for, one file each. Order of checks: shape, existence, authority, state; then
effects."""
