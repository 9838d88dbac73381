"""The reference solutions, one plain file each, and nothing else."""
