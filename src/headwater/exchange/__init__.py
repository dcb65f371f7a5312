"""What a client's ops mean, and who gets a message: sessions, router, subscriptions, accounts. Start reading at
`session.py` and `router.py`.
"""
