"""The bytes of a TCP connection in order, each once, and the holes among them."""
