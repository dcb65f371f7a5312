"""`headwater serve`: a broker as a process of its own, or as several: flags, log, signals, workers. Start reading at
`command.py`.
"""
