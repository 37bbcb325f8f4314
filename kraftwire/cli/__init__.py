"""The command line: one program, `kraftwire`, whose commands load when they are called."""
