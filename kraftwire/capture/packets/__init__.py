"""From a capture file to TCP segments: bytes in order, packets, link and network layers."""
