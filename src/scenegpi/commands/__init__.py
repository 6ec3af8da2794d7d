"""The commands, one module per group; each is thin: parse, call, print."""
