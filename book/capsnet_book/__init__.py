"""What only the book's chapters use: their figures, the ledger's reader, their glue."""

from capsnet_book.notebook import glue, source

__all__ = ["glue", "source"]
