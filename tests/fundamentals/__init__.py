"""How ticketgate works, as tests to be read in the order of their numbers. Each is tried closer in its own room."""
