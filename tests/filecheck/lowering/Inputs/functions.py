"""Functions that the tests of `nd.custom_call` call by name."""

import gradir

gradir.register_custom_call("double", lambda x, factor: (factor * x).astype(x.dtype), shape=lambda x, factor: x)
gradir.register_custom_call("note", lambda x: None, shape=lambda x: (), effects=True)
