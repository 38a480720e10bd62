"""What the package costs, measured beside others: ``make bench`` fills ``results/bench``."""
