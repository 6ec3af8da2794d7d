"""People and what they do: wear, hold, ride, walk a dog, fly a kite."""

from __future__ import annotations

from dataclasses import replace

from scenegpi.paper.rendered.animals import flyer, four_legs
from scenegpi.paper.rendered.brush import Frame
from scenegpi.paper.rendered.drawing import Drawing
from scenegpi.paper.rendered.large_things import bike
from scenegpi.paper.rendered.people import person
from scenegpi.paper.rendered.small_things import case, dome, round_thing, tin
from scenegpi.paper.rendered.stage import Line, Stage

OUTDOOR_HELD = {"ball": 3.0, "bag": 3.0, "bucket": 2.0, "balloon": 3.0, "umbrella": 3.0, "kite": 10.0, "hat": 0.6}
TABLE_HELD = {"plate": 2.0, "cup": 3.0, "bowl": 1.5, "box": 2.0}
ARM = {"bag": "side", "bucket": "side", "balloon": "up", "umbrella": "up", "kite": "up"}
STRING = (120, 116, 112)


def draw_small(stage: Stage, label: str, shared: bool | None = None) -> Drawing:
    """A small thing of this name, in a size common to its family wherever that is possible."""
    rng = stage.rng
    shared = stage.shared() if shared is None else shared
    if label in ("plate", "ball"):
        return round_thing(rng, label, shared, rng.uniform(0.16, 0.23))
    if label == "balloon":
        return round_thing(rng, label, shared, rng.uniform(0.18, 0.26))
    if label in ("hat", "bowl"):
        return dome(rng, label, shared, rng.uniform(0.4, 0.52))
    if label in ("cup", "bucket", "lamp"):
        low, high = {"cup": (0.26, 0.36), "bucket": (0.3, 0.44), "lamp": (0.36, 0.5)}[label]
        return tin(rng, label, shared, rng.uniform(low, high))
    return case(rng, label, shared, rng.uniform(0.4, 0.56))


def somebody(stage: Stage, frame: Frame, pose: str, arm: str = "down", child: float = 0.5, order: float = 0.0) -> int:
    """A person, or with this chance a child; maybe with a hat."""
    rng = stage.rng
    label = "child" if rng.random() < child else "person"
    drawing = person(rng, label, stage.shared(), pose, arm)
    who = stage.add(label, drawing, frame, order=frame.y + order, shadow=0.5 if pose in ("stand", "walk") else 0.0)
    if rng.random() < 0.27:
        size, head = drawing.points["size"]
        hat = dome(rng, "hat", stage.shared(), 0.37 * size * head * rng.uniform(1.05, 1.3))
        x, y = stage.point(who, "head")
        worn = stage.add("hat", hat, replace(frame, x=x, y=y), order=frame.y + order + 0.03, depth=frame.y)
        stage.relate(who, "wearing", worn, 0.95)
    return who


def hold(stage: Stage, who: int, label: str) -> int:
    """Puts a thing into somebody's hand."""
    holder = stage.things[who]
    x, y = stage.point(who, "hand")
    scale, rng = holder.frame.scale, stage.rng
    order = holder.order + 0.02
    if label in ("kite", "balloon"):
        return _on_a_string(stage, who, label)
    if label == "umbrella":
        drawing = dome(rng, label, stage.shared(), rng.uniform(1.0, 1.25))
        top = y - rng.uniform(0.3, 0.45) * scale
        lean = -0.16 if not holder.frame.flip else 0.16
        end = (x + lean * scale, top)
        stage.lines.append(Line((x, y), (end[0], top - 0.3 * scale), 0.035 * scale, (70, 66, 70), order))
        held = stage.add(label, drawing, Frame(*end, scale), order=order + 0.01, depth=holder.depth)
        stage.relate(who, "holding", held)
        if rng.random() < 0.4:
            stage.relate(who, "under", held, 0.7)
        return held
    drawing = draw_small(stage, label)
    frame = Frame(x, y, scale, holder.frame.flip)
    if "grip" in drawing.points:
        frame = replace(frame, y=y + drawing.points["grip"][1] * scale)
    else:
        frame = replace(frame, y=y + drawing.points["top"][1] * scale / 2)
    held = stage.add(label, drawing, frame, order=order, depth=holder.depth)
    stage.relate(who, "holding", held)
    return held


def _on_a_string(stage: Stage, who: int, label: str) -> int:
    """A kite or balloon far above the hand that holds its string; the string is faint and fades on its way."""
    rng, holder = stage.rng, stage.things[who]
    x, y = stage.point(who, "hand")
    scale = holder.frame.scale
    room = y - 0.06 * stage.size[1]
    if label == "kite":
        drawing = flyer(rng, label, stage.shared())
        rise = min(rng.uniform(1.2, 2.6) * scale, room * 0.9)
        run = rng.uniform(0.3, 1.0) * rise * rng.choice((-1, 1))
        size = scale * rng.uniform(0.75, 1.0)
    else:
        drawing = round_thing(rng, label, stage.shared(), rng.uniform(0.2, 0.28))
        rise = min(rng.uniform(0.6, 1.2) * scale, room * 0.7)
        run, size = rng.uniform(-0.25, 0.25) * rise, scale
    x2 = min(max(x + run, 0.08 * stage.size[0]), 0.92 * stage.size[0])
    y2 = y - max(rise, 0.25 * scale)
    stage.lines.append(Line((x, y), (x2, y2), 1.6, STRING, holder.order + 0.02, fades=True))
    held = stage.add(label, drawing, Frame(x2, y2, size), order=holder.order + 0.03, depth=holder.depth, floating=True)
    stage.relate(who, "holding", held)
    return held


def walker(stage: Stage, frame: Frame | None = None) -> int:
    """Somebody who walks or stands, with something in the hand, with a dog, with company, beside something."""
    rng = stage.rng
    frame = frame or stage.spot(1.0)
    held = rng.choices(list(OUTDOOR_HELD), list(OUTDOOR_HELD.values()))[0] if rng.random() < 0.7 else ""
    if stage.setting == "room" and held in ("kite", "umbrella"):
        held = "balloon" if rng.random() < 0.5 else "ball"
    who = somebody(stage, frame, rng.choice(("stand", "walk")), ARM.get(held, "forward") if held else "down")
    if held:
        hold(stage, who, held)
    side = -1 if rng.random() < 0.5 else 1
    luck = rng.random()
    if luck < 0.34:
        beside(stage, who, "dog", side)
    elif luck < 0.5:
        beside(stage, who, rng.choice(("ball", "bag", "bucket", "box")), side)
    elif luck < 0.72:
        friend = replace(frame, x=frame.x + side * frame.scale * rng.uniform(0.65, 1.0), y=frame.y + rng.uniform(-8, 8))
        friend = replace(friend, scale=stage.scale(friend.y), flip=side > 0)
        other = somebody(stage, friend, "stand", "down", child=0.45)
        stage.relate(*((who, "near", other) if rng.random() < 0.5 else (other, "near", who)), 0.6)
    return who


def beside(stage: Stage, who: int, label: str, side: int) -> int:
    """A dog, a horse or a small thing on the ground at somebody's side."""
    rng, frame = stage.rng, stage.things[who].frame
    far = {"dog": 0.8, "horse": 1.5}.get(label, 0.5)
    y = frame.y + rng.uniform(-0.12, 0.16) * frame.scale
    scale = stage.scale(y)
    spot = Frame(frame.x + side * far * scale * rng.uniform(0.85, 1.25), y, scale, rng.random() < 0.5)
    if label in ("dog", "horse"):
        other = stage.add(label, four_legs(rng, label, stage.shared()), spot, shadow=1.3 if label == "horse" else 0.6)
    else:
        other = stage.add(label, draw_small(stage, label), spot, shadow=0.32)
    stage.relate(*((who, "near", other) if rng.random() < 0.5 else (other, "near", who)), 0.55)
    return other


def rider(stage: Stage) -> None:
    """A horse: ridden, led, or alone, maybe with a dog that looks like a small one."""
    rng = stage.rng
    frame = stage.spot(2.6)
    drawing = four_legs(rng, "horse", stage.shared())
    horse = stage.add("horse", drawing, frame, shadow=1.4)
    luck = rng.random()
    if luck < 0.55:
        x, y = stage.point(horse, "back")
        seat = Frame(x, y, frame.scale, frame.flip)
        who = somebody(stage, replace(seat, y=y), "ride", "reins", child=0.25)
        ridden = stage.things[who]
        lift = frame.y - y  # the rider stands on the ground where the horse does
        for t in stage.things[who:]:
            t.order, t.depth = t.order + lift + 0.05, frame.y
        stage.relate(who, "riding", horse, 0.97)
        assert ridden.depth == frame.y
    elif luck < 0.85:
        y = frame.y + rng.choice((-0.3, 0.25)) * frame.scale
        x = frame.x + rng.uniform(-0.9, 0.9) * frame.scale
        who = somebody(stage, Frame(x, y, stage.scale(y), rng.random() < 0.5), "stand", rng.choice(("down", "forward")))
        stage.relate(who, "in front of" if y > frame.y else "behind", horse, 0.6)
    if rng.random() < 0.35:
        beside(stage, horse, "dog", rng.choice((-2, 2)))
    elif rng.random() < 0.3:
        beside(stage, horse, "horse", rng.choice((-1, 1)))


def cyclist(stage: Stage) -> None:
    """A bike: ridden, pushed, or leaning somewhere."""
    rng = stage.rng
    frame = stage.spot(1.6)
    at = stage.add("bike", bike(rng), frame, shadow=1.2)
    wheels(stage, at, 0.34)
    x, y = stage.point(at, "saddle")
    luck = rng.random()
    if luck < 0.5:
        who = somebody(stage, Frame(x, y, frame.scale * 0.95, frame.flip), "cycle", "reins", child=0.2)
        for t in stage.things[who:]:
            t.order, t.depth = t.order + frame.y - y + 0.05, frame.y
        stage.relate(who, "riding", at, 0.97)
    elif luck < 0.85:
        y = frame.y + rng.choice((-0.12, 0.14)) * frame.scale
        who = somebody(
            stage,
            Frame(frame.x - rng.choice((-1, 1)) * frame.scale * rng.uniform(0.25, 0.8), y, stage.scale(y), frame.flip),
            "stand",
            "forward",
        )
        stage.relate(who, rng.choice(("near", "holding")) if y < frame.y else "in front of", at, 0.7)


def wheels(stage: Stage, whole: int, radius: float) -> None:
    """The two wheels of a car or a bike: alike, as wheels are."""
    thing = stage.things[whole]
    state, shared = stage.rng.getstate(), stage.shared()
    for name in ("wheel0", "wheel1"):
        if name == "wheel1":
            after = stage.rng.getstate()
            stage.rng.setstate(state)
            stage.rng.random()
        drawing = round_thing(stage.rng, "wheel", shared, radius)
        x, y = stage.point(whole, name)
        wheel = stage.add(
            "wheel", drawing, Frame(x, y, thing.frame.scale), order=thing.order + 0.01, depth=thing.depth, part_of=whole
        )
        stage.relate(whole, "has", wheel, 0.6) if name == "wheel0" else stage.relate(wheel, "on", whole, 0.55)
    stage.rng.setstate(after)
