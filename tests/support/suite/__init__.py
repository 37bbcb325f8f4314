"""The run of the tests itself: marks, order, engines."""
