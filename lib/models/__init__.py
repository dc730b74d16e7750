"""The models of the papers, and those that they compare with."""
