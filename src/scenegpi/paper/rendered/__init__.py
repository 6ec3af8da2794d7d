"""Rendered scenes: pictures with exact boxes, labels and relations, from a grammar and a seed. No data needed.

from scenegpi.paper.rendered import render_scene
image, graph = render_scene(seed=0)

    stage      an empty place seen through a camera
    grammar    which gatherings a setting has; `company` and `places` put their things on the stage
    paint      things (people, animals, small_things, large_things) on a backdrop, and which pixel shows which thing
    annotate   boxes from the pixels, relations from the grammar and the geometry
    damage     light, blur, grain
    folder     many of them as a Visual Genome folder with JPEGs
"""

from scenegpi.paper.rendered.folder import render_folder
from scenegpi.paper.rendered.scene import render_scene
from scenegpi.paper.rendered.stage import SceneOptions
from scenegpi.paper.rendered.vocabulary import rendered_vocabulary

__all__ = ["SceneOptions", "render_folder", "render_scene", "rendered_vocabulary"]
