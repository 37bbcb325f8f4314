"""From the bytes of one direction to frames: length prefixes, headers, finding frames again."""
