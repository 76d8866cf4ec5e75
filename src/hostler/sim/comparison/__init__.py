"""Peers and ourselves in the same worlds: the runs, the figures with their intervals, and the page that tells them."""
