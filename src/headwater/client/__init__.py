"""What programs use: connect, publish, subscribe, request; JetStream, buckets, services. Start reading at
`client.py`; the connection below it is `headwater.client_connection`.
"""
