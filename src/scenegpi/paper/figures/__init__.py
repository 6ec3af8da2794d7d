"""Figures of the paper and of its documentation."""
