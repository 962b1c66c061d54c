"""Small faults in the product: each is made in turn, and tests must notice."""
