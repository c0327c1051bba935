"""Programs that check the repository itself; no part of the product."""
