"""Accuracy of compiled elementwise functions: every f32 input of every function of one number, against f64 (see `__main__`)."""
