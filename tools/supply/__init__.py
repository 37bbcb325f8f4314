"""What the project is built from: pinned versions, a bill of materials, known vulnerabilities."""
