"""Small mistakes in the rules, each of which some ring of the tests must notice."""
