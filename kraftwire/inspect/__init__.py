"""What people see of captures and logs: lines, trees, bytes, statistics, stories, comparisons."""
