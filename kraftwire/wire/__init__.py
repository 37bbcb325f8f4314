"""The codec under all messages: varints, frames, encodings, and readers that explain errors."""
