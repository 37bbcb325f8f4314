"""Dialogues with the layer of a proxied connection, and cluster answers to put into them."""
