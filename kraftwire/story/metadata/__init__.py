"""What a metadata log says at an offset: the state of every entity, and how two states differ."""
