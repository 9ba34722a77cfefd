"""The PTX emulator: PTX text runs on numpy arrays (`launch`), and what is wrong with it is reported. docs/ptx.md."""
