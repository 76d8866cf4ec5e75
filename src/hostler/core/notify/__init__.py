"""Notifications: records → notices → messages of each route. Pure; `runtime` keeps and delivers them."""
