"""Many graphs on disk, as Parquet tables that any tool reads, and search over them by triples.

store = Store("photos.store")
store.add(graphs)                                     # appends; an image with the same key is replaced
for hit in store.search("person riding horse and ?a wearing hat").hits: ...
store.similar(graph)                                  # images ranked by how much of a whole graph they show
"""

from typing import TYPE_CHECKING

from scenegpi.lazy import lazy

if TYPE_CHECKING:
    from scenegpi.store.parse import parse_query
    from scenegpi.store.query import Query, QueryError
    from scenegpi.store.store import Answer, Hit, Store

__getattr__, __dir__, __all__ = lazy(__name__)
