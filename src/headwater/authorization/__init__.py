"""Who may come in, and which subjects a client may use: credentials, permissions, signed JWTs. Pure, but for the
threads that compare passwords. Start reading at `gate.py` for logins, at `guard.py` for subjects.
"""
