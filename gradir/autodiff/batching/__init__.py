"""`ad.batch`: a function of one element becomes one of many, as whole ops with one more dimension in front."""
