"""Targets of notifications: signed webhooks, mail, chat, pagers and Alertmanager."""
