"""Load for any server that speaks this wire; see README.md. Reports numbers, never fails on them."""
