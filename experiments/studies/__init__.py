"""One-off studies: each was run once, and its record is in the ledger."""
