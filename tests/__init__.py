"""The tests, and the measurements that are no tests; see README.md."""
