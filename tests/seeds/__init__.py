"""The requirements this product began with, row by row: what each says, and what came out. `make seeds` prints them."""
