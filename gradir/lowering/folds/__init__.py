"""Local identities, one module per dialect, each a table `FOLDS: dict[op class, rule]`; `canonicalize` applies them.

`table.py` says what a rule is and which module serves which dialect.
"""
