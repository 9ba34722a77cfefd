"""What programs are made of: ops, types, attributes, verifiers and the reference meaning of each op."""
