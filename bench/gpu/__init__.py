"""What is measured on a GPU, and what is checked without one: `python -m bench.gpu.check`."""
