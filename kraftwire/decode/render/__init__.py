"""What people see of captures and logs; see README.md."""
