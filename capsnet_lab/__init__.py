"""What `pip install` brings besides the module: the command line, and other networks."""
