"""Side-by-side benchmark: the same workloads, written once, run by several systems in turns. `python -m bench` prints the table."""
