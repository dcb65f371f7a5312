"""The system account: services that tell about the server, and events of its clients. See services.py and events.py."""
