"""The comparison of four ways from a request to an effect (P, R, C and G); see README.md beside this."""
