"""Places in a scene and what gathers there: a table, a bench, a car, a boat, trees, houses, a wall, the air."""

from __future__ import annotations

from dataclasses import replace

from scenegpi.paper.rendered.animals import flyer, four_legs, perched_bird
from scenegpi.paper.rendered.brush import Frame
from scenegpi.paper.rendered.company import TABLE_HELD, draw_small, hold, somebody, wheels
from scenegpi.paper.rendered.large_things import boat, building, car, green, pane, slab
from scenegpi.paper.rendered.small_things import round_thing, tin
from scenegpi.paper.rendered.stage import Line, Stage

ON = {  # what lies on a table, what on a bench: for each thing on one its look-alike on the other
    "table": {"plate": 3.0, "bowl": 2.5, "cup": 3.0, "box": 1.5, "lamp": 1.0},
    "bench": {"ball": 3.0, "hat": 2.0, "bucket": 2.0, "bag": 3.0},
}
UNDER = {
    "table": {"dog": 2.0, "box": 2.0, "bucket": 1.0},
    "bench": {"dog": 1.0, "bag": 2.0, "ball": 2.0, "bucket": 1.0},
}
SURPRISE = 0.06  # a thing where its look-alike belongs


def gathering(stage: Stage, label: str) -> None:
    """A table or a bench with things on and under it and people about."""
    rng = stage.rng
    frame = stage.spot(2.3)
    at = stage.add(label, slab(rng, label, stage.shared(-0.25)), frame, shadow=1.7)
    sits = label == "bench" and rng.random() < 0.55
    (left, y), (right, _) = stage.point(at, "left"), stage.point(at, "right")
    left, right = min(left, right), max(left, right)
    places = [left + (right - left) * (k + 0.5) / 4 + rng.uniform(-6, 6) for k in range(4)]
    rng.shuffle(places)
    if sits:
        x = places.pop()
        who = somebody(
            stage, Frame(x, frame.y, frame.scale, rng.random() < 0.5), "sit", rng.choice(("down", "forward")), order=0.1
        )
        for t in stage.things[who:]:  # the seat of the bench is where the hip is
            size = stage.things[who].drawing.points["size"][0]
            t.frame = replace(t.frame, y=t.frame.y - (frame.y - y) + 0.46 * size * frame.scale)
        stage.relate(who, "sitting on", at, 0.97)
        places = [p for p in places if abs(p - x) > 0.3 * frame.scale]
    for x in places[: rng.choice((1, 2, 2, 3, 3))]:
        kinds = ON[label if rng.random() > SURPRISE else "table" if label == "bench" else "bench"]
        kind = rng.choices(list(kinds), list(kinds.values()))[0]
        item = stage.add(
            kind,
            draw_small(stage, kind),
            Frame(x, y, frame.scale, rng.random() < 0.5),
            order=frame.y + 0.05,
            depth=frame.y,
        )
        stage.relate(item, "on", at, 0.85)
    if rng.random() < 0.45:
        kind = rng.choices(list(UNDER[label]), list(UNDER[label].values()))[0]
        drawing = four_legs(rng, kind, stage.shared()) if kind == "dog" else draw_small(stage, kind)
        x = frame.x + rng.uniform(-0.35, 0.35) * frame.scale
        below = stage.add(
            kind, drawing, Frame(x, frame.y - 2, frame.scale * 0.85), order=frame.y - 0.05, depth=frame.y, shadow=0.4
        )
        stage.relate(below, "under", at, 0.9)
    for side in (-1, 1):
        if rng.random() < (0.42 if label == "table" else 0.25):
            _visitor(stage, at, label, side)
    if label == "table" and stage.setting == "room" and rng.random() < 0.5:
        _hanging_lamp(stage, at)


def _visitor(stage: Stage, at: int, label: str, side: int) -> None:
    """Somebody behind, beside or before the table or bench; at a table, with what belongs there in the hand."""
    rng, frame = stage.rng, stage.things[at].frame
    where = rng.choices(("behind", "near", "in front of"), (4, 3, 1.2))[0]
    dy = {"behind": -0.3, "near": 0.02, "in front of": 0.3}[where] * frame.scale
    dx = side * frame.scale * (rng.uniform(1.15, 1.4) if where == "near" else rng.uniform(0.2, 0.6))
    y = frame.y + dy
    held = label == "table" and rng.random() < 0.5
    spot = Frame(frame.x + dx, y, stage.scale(y), side > 0)
    who = somebody(stage, spot, "stand", "forward" if held else "down")
    stage.relate(who, where, at, 0.75)
    if held:
        hold(stage, who, rng.choices(list(TABLE_HELD), list(TABLE_HELD.values()))[0])


def _hanging_lamp(stage: Stage, at: int) -> None:
    rng, frame = stage.rng, stage.things[at].frame
    y = frame.y - rng.uniform(1.75, 2.1) * frame.scale
    if y < 0.1 * stage.size[1]:
        return
    drawing = tin(rng, "lamp", stage.shared(), rng.uniform(0.34, 0.46))
    x = frame.x + rng.uniform(-0.4, 0.4) * frame.scale
    stage.lines.append(Line((x, 0), (x, y - 0.3 * frame.scale), 2.0, (70, 66, 70), frame.y - 0.2))
    lamp = stage.add("lamp", drawing, Frame(x, y, frame.scale), order=frame.y - 0.1, depth=frame.y, floating=True)
    stage.relate(lamp, "above", at, 0.9)


def parking(stage: Stage) -> None:
    """A car, with somebody in it, behind it or in front of it, or something on its roof."""
    rng = stage.rng
    frame = stage.spot(3.9)
    at = stage.add("car", car(rng), frame, shadow=3.4)
    wheels(stage, at, 0.36)
    luck = rng.random()
    if luck < 0.55:
        before = rng.random() < 0.5
        y = frame.y + (0.35 if before else -0.55) * frame.scale
        who = somebody(
            stage,
            Frame(frame.x + rng.uniform(-1.4, 1.4) * frame.scale, y, stage.scale(y), rng.random() < 0.5),
            "stand",
            "down",
        )
        stage.relate(who, "in front of" if before else "behind", at, 0.8)
    elif luck < 0.75:
        kind = rng.choice(("box", "bag", "box", "bag", "boat", "dog"))
        if kind in ("box", "bag"):
            x, y = stage.point(at, "roof")
            item = stage.add(
                kind, draw_small(stage, kind), Frame(x, y, frame.scale * 1.2), order=frame.y + 0.05, depth=frame.y
            )
            stage.relate(item, "on", at)
        else:
            y = frame.y + 0.3 * frame.scale
            dog = stage.add(
                "dog",
                four_legs(rng, "dog", stage.shared()),
                Frame(frame.x + rng.uniform(-1.2, 1.2) * frame.scale, y, stage.scale(y), rng.random() < 0.5),
                shadow=0.6,
            )
            stage.relate(dog, "in front of", at, 0.7)


def mooring(stage: Stage) -> None:
    """A boat on the water with somebody or something in it."""
    rng = stage.rng
    shore = stage.far
    far = stage.horizon + 0.35 * (shore - stage.horizon)
    frame = stage.spot(3.4, near=shore - 6, far=far)
    at = stage.add("boat", boat(rng), frame, shadow=2.6)
    rim = stage.point(at, "rim")[1]
    for name in ("seat0", "seat1"):
        luck = rng.random()
        x, y = stage.point(at, name)
        if luck < 0.45:
            spot = Frame(x, y + 0.25 * frame.scale, frame.scale, rng.random() < 0.5)
            who = somebody(stage, spot, "sit", rng.choice(("down", "forward")))
        elif luck < 0.75:
            kind = rng.choice(("bucket", "bag", "dog", "bag"))
            drawing = four_legs(rng, kind, stage.shared()) if kind == "dog" else draw_small(stage, kind)
            who = stage.add(kind, drawing, Frame(x, y - 0.22 * frame.scale, frame.scale))
        else:
            continue
        for k, t in enumerate(stage.things[who:]):
            t.order, t.depth = frame.y + 0.1 + 0.01 * k, frame.y
            low = max(t.drawing.extent.bottom, (t.frame.y - rim) / t.frame.scale)
            t.drawing = replace(t.drawing, extent=replace(t.drawing.extent, bottom=low))  # the hull hides the rest
        stage.relate(who, "in", at, 0.95)


def grove(stage: Stage) -> None:
    """Trees or bushes, with a bird on top, somebody or something under or behind them."""
    rng = stage.rng
    for k in range(rng.choice((1, 1, 2))):
        label = "tree" if rng.random() < 0.58 else "bush"
        frame = stage.spot(2.2 if label == "tree" else 1.1)
        at = stage.add(label, green(rng, label, stage.shared(0.1)), frame, shadow=1.2 if label == "tree" else 0.9)
        luck = rng.random()
        if luck < 0.3:
            x, y = stage.point(at, "top" if rng.random() < 0.6 else "side")
            bird = stage.add(
                "bird",
                perched_bird(rng),
                Frame(x, y, frame.scale * 1.1, rng.random() < 0.5),
                order=frame.y + 0.05,
                depth=frame.y,
            )
            stage.relate(bird, "on" if y < stage.point(at, "crown")[1] - 10 else "in", at, 0.85)
        elif luck < 0.55 and label == "tree" and k == 0:
            y = frame.y + 0.15 * frame.scale
            spot = Frame(frame.x + rng.uniform(-0.5, 0.5) * frame.scale, y, stage.scale(y), rng.random() < 0.5)
            if rng.random() < 0.6:
                who = somebody(stage, spot, "stand", "down", child=0.6)
            else:
                kind = rng.choice(("ball", "bag", "bucket"))
                who = stage.add(kind, draw_small(stage, kind), spot, shadow=0.3)
            stage.relate(who, "under", at, 0.85)
        elif luck < 0.75 and label == "bush":
            y = frame.y - 0.2 * frame.scale
            spot = Frame(frame.x + rng.uniform(-0.5, 0.5) * frame.scale, y, stage.scale(y), rng.random() < 0.5)
            if rng.random() < 0.5:
                who = somebody(stage, spot, "stand", "down", child=0.4)
            else:
                who = stage.add("dog", four_legs(rng, "dog", stage.shared()), spot, shadow=0.6)
            stage.relate(who, "behind", at, 0.8)


def house(stage: Stage) -> None:
    """A house with windows, maybe a clock, maybe a bird on its roof."""
    rng = stage.rng
    near = min(stage.far + 6, stage.near)
    frame = replace(stage.spot(4.2, near=near, far=stage.horizon + 0.5 * (near - stage.horizon)), flip=False)
    drawing = building(rng)
    at = stage.add("building", drawing, frame, shadow=0)
    slots = [name for name in drawing.points if name.startswith("w")]
    width, height = rng.uniform(0.7, 0.95), rng.uniform(0.8, 1.0)
    shared = stage.shared()
    seed = rng.getrandbits(32)
    noted = set(rng.sample(slots, min(rng.choice((1, 2, 2, 3)), len(slots))))
    for name in slots:
        x, y = stage.point(at, name)
        rng_state = rng.getstate()
        rng.seed(seed)  # the windows of a house are alike
        sheet = pane(rng, "window", shared, width, height)
        rng.setstate(rng_state)
        window = stage.add(
            "window" if name in noted else "", sheet, Frame(x, y, frame.scale), order=frame.y + 0.01, depth=frame.y
        )
        if name in noted:
            stage.relate(*((at, "has", window) if rng.random() < 0.5 else (window, "on", at)), 0.6)
    if rng.random() < 0.3:
        x, y = stage.point(at, "clock")
        clock = stage.add(
            "clock",
            round_thing(rng, "clock", stage.shared(), 0.34),
            Frame(x, y, frame.scale),
            order=frame.y + 0.02,
            depth=frame.y,
        )
        stage.relate(clock, "on", at)
    if rng.random() < 0.2:
        x, y = stage.point(at, "roof")
        bird = stage.add("bird", perched_bird(rng), Frame(x, y, frame.scale * 1.6), order=frame.y + 0.02, depth=frame.y)
        stage.relate(bird, "on", at)


def wall(stage: Stage) -> None:
    """What hangs on the wall of a room: pictures, a window, a clock."""
    rng = stage.rng
    floor = stage.far - 12
    scale = stage.scale(floor)
    slots = [0.14, 0.38, 0.62, 0.86]
    rng.shuffle(slots)
    for slot in slots[: rng.choice((1, 2, 2, 3))]:
        label = rng.choices(("picture", "window", "clock"), (5, 2.2, 2.2))[0]
        x, y = (
            stage.size[0] * slot + rng.uniform(-12, 12),
            max(floor - rng.uniform(1.3, 1.75) * scale, 0.2 * stage.size[1]),
        )
        if label == "clock":
            drawing = round_thing(rng, label, stage.shared(), rng.uniform(0.2, 0.27))
        else:
            drawing = pane(rng, label, stage.shared(0.1), rng.uniform(0.6, 0.9), rng.uniform(0.6, 0.9))
        stage.add(label, drawing, Frame(x, y, scale), order=floor - 5, depth=floor, floating=True)


def flock(stage: Stage) -> None:
    """One to three birds in the air."""
    rng = stage.rng
    w, h = stage.size
    scale = stage.scale(rng.uniform(stage.far, stage.near))
    x, y = rng.uniform(0.12, 0.88) * w, rng.uniform(0.08, 0.26) * h
    shared = stage.shared()
    for _ in range(rng.choice((1, 1, 2))):
        stage.add(
            "bird",
            flyer(rng, "bird", shared),
            Frame(x, y, scale * rng.uniform(0.75, 1.1), rng.random() < 0.5),
            order=stage.horizon - 1,
            depth=stage.far,
            floating=True,
        )
        x, y = (
            min(max(x + rng.choice((-1, 1)) * rng.uniform(1.1, 1.8) * scale, 20), w - 20),
            max(y + rng.uniform(-24, 24), 16),
        )
