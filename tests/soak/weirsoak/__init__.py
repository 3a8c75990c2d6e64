"""Faults at real sockets, and a ledger of what the database has acknowledged. See README.md beside the program."""
