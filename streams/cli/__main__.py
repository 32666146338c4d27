"""`python -m ticketgate.streams.cli`, for where the command is not on the path."""

from ticketgate.streams.cli import main

main()
