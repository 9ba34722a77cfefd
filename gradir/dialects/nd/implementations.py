"""The rows of the operator library that come with us: see `gradir.dialects.target.implementations`."""
