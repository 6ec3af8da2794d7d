"""The commands, one module a group; each is thin: parse, call, print."""
