"""The story of groups: who joined and left, generations, assignments, lag; see README.md."""
