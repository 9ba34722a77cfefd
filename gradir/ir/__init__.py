"""Infrastructure over xDSL that dialects and passes share: building, text, locations, verification, passes."""
