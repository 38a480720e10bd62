"""The plots of classifications, for the command line and for the book.

A function takes numbers and returns a :class:`Figure`; it neither computes results nor touches
matplotlib's global state. Arrays may be NumPy's or torch's, on any device.
"""

from capsnet_lab.figures.predictions import confusion_matrix, contact_sheet

__all__ = ["confusion_matrix", "contact_sheet"]
