"""Requests and responses as a whole: headers, versions, error codes."""
