"""The boot listener: scripts, images and cloud-init's data for machines on the boot network."""
