"""The options of a broker, its listeners, accounts, cluster and leaf nodes: plain values, checked when they are made."""
