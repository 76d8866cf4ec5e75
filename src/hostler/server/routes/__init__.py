"""The routes, by whom they serve: people looking, people asking, agents reporting, machines scraping."""
