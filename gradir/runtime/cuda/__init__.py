"""GPUs: one interface (`device.Device`), the real ones through cupy, and one that runs PTX in the emulator on numpy arrays.

`device_named("cuda")`, `"cuda:1"`, `"cuda:emulated"` give a device; programs find theirs by the target that they were compiled for.
"""
