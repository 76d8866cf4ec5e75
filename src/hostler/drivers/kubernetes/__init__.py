"""Cordons, drains and watches nodes of a Kubernetes cluster."""
