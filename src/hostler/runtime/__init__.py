"""The asyncio shell around the controller: runner, lease renewal, replica, dispatcher."""
