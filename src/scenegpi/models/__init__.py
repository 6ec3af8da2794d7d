"""Tensors -> distributions: one model a file."""
