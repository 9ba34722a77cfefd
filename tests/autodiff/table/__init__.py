"""What docs/status/autodiff.md says: every op with a derivative, on every sample, against differences and against JAX."""
