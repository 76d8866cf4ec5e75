"""Secrets: from files and folders, or from Vault; of Kubernetes see `kubernetes.secret_objects`."""
