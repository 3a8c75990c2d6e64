"""The differential tester's parts. See ../README.md."""
