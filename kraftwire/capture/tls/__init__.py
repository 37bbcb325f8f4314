"""TLS records of connections whose secrets are known: which keys they have, and what is in them."""
