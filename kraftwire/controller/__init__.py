"""The controller's pure part: what the committed metadata records say."""
