"""What the package costs, compared with others: ``make bench`` fills ``results/bench``."""
