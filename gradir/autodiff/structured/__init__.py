"""Derivatives of level 2: loop nests (`linalg.generic`), their scalar bodies, slices of tensors."""
