"""A cluster that can fail: hosts, scheduler, jobs and people in virtual time, drawn from one seed."""
