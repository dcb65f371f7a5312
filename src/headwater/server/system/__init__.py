"""The system account: services with facts about the server, and events of its clients. See services.py and events.py."""
