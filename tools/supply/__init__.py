"""The dependencies of the project: pinned versions, a bill of materials, known vulnerabilities."""
