"""Rendered scenes: pictures with exact boxes, labels and relations, from a grammar and a seed. No data needed.

from scenegpi.paper.rendered import render_scene
image, graph = render_scene(seed=0)

    stage      an empty place seen through a camera
    grammar    which groups of things a setting has
    things     their drawings, families of look-alikes and names
    paint      things on a backdrop, and which pixel shows which thing
    scene      the picture, boxes from its pixels, relations from the grammar and the geometry
    folder     many of them as a Visual Genome folder with JPEGs
"""

from scenegpi.paper.rendered.folder import render_folder
from scenegpi.paper.rendered.scene import render_scene
from scenegpi.paper.rendered.stage import SceneOptions
from scenegpi.paper.rendered.things import rendered_vocabulary

__all__ = ["SceneOptions", "render_folder", "render_scene", "rendered_vocabulary"]
