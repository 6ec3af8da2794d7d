"""The web studio and its HTTP interface (docs/studio.md): a page on this machine; no data leaves it."""
