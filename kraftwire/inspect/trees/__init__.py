"""The fields of messages as indented trees."""
