"""The story of groups: members, generations, assignments and lag."""
