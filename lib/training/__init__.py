"""The loop over updates, its losses, and the files of a run."""
