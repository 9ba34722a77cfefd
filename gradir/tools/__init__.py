"""The command lines: gradir-opt, gradir-run, gradir-translate and their relatives."""
