"""The runs that fill the ledger: declared once, resumable, never run twice (``make results``)."""
