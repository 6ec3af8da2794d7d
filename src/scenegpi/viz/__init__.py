"""Pictures of scene graphs: in the terminal, and as PNG or SVG."""
