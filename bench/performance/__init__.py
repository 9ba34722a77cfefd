"""The page docs/status/performance.md from the measurements in bench/data; nothing is measured here."""
