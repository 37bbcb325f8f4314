"""Rules for requests that are refused, held, delayed or changed: which ones, and what happens.

Nothing here waits or reads a clock: who serves the requests does.
"""
