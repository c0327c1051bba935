"""What every implementation of the store port must do."""
