"""Photo and boxes -> label distributions; photo -> boxes.

graph = vision.add_labels("street.jpg", graph)     # VisionModel: the graph with `label_dist`, nothing else changed

Names are loaded on first use: importing torch takes seconds.
"""

from typing import TYPE_CHECKING

from scenegpi.lazy import lazy

if TYPE_CHECKING:
    from scenegpi.vision.box_features import BoxFeatureExtractor
    from scenegpi.vision.cache import cached_box_features
    from scenegpi.vision.config import BoxFeatureConfig, HeadConfig, VisionConfig
    from scenegpi.vision.detect import Detections, Detector, load_detector
    from scenegpi.vision.model import VisionModel
    from scenegpi.vision.photos import EncodedPhoto, as_photo, open_photo, photo_boxes

__getattr__, __dir__, __all__ = lazy(__name__)
