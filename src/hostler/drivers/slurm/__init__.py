"""Drains, resumes and watches nodes of a Slurm cluster."""
