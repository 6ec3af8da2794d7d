"""The grammar: what is in a scene, and who does what with it. A scene is a stage and a few groups of things."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from scenegpi.paper.rendered.brush import Frame
from scenegpi.paper.rendered.stage import SceneOptions, Stage, Thing, open_stage

Weights = dict[str, float]
GROUPS: dict[str, Weights] = {  # the first of them is in most scenes
    "park": {"horse": 2.0, "walker": 3.0, "grove": 2.0, "bench": 2.5, "table": 1.5},
    "street": {"car": 2.6, "walker": 2.5, "bench": 1.4, "table": 1.0, "grove": 1.0},
    "room": {"table": 2.0, "bench": 3.0, "walker": 2.0},
}
HELD: Weights = {"ball": 3.0, "bucket": 3.0, "balloon": 5.0, "hat": 0.6}
HELD_AT_TABLE: Weights = {"plate": 2.0, "cup": 3.0, "bowl": 1.5}
ARM = {"bucket": "side", "balloon": "up"}
ON: dict[str, Weights] = {  # what lies on a table, what on a bench: for each thing on one its look-alike on the other
    "table": {"plate": 3.0, "bowl": 2.5, "cup": 3.0},
    "bench": {"ball": 3.0, "hat": 2.0, "bucket": 3.0},
}
UNDER: dict[str, Weights] = {
    "table": {"dog": 2.0, "ball": 1.0, "bucket": 1.0},
    "bench": {"dog": 1.0, "ball": 2.0, "bucket": 2.0},
    "tree": {"ball": 1.0, "bucket": 1.0},
}
SURPRISE = 0.06  # a thing where its look-alike belongs


def imagine(rng: Random, options: SceneOptions) -> Stage:
    """A whole scene, not yet painted."""
    stage = open_stage(rng, options)
    groups = GROUPS[stage.setting]
    wanted = rng.choices((4, 6, 8, 10, 13), (2, 4, 4, 2, 1))[0]
    least = 3 if stage.frame(0, stage.near).scale < 0.28 * stage.size[1] else 2  # a wide view has room for more
    first = [next(iter(groups))] if rng.random() < 0.7 else []
    for k, group in enumerate(first + rng.choices(list(groups), list(groups.values()), k=6)):
        if k >= least + len(first) and len(stage.things) >= wanted:
            break
        if group in ON:
            _gathering(stage, group)
        else:
            {"walker": _walker, "horse": _horse, "car": _car, "grove": _grove}[group](stage)
    return stage


def _one_of(rng: Random, weights: Weights) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]


def _somebody(
    stage: Stage, frame: Frame, on: Thing | None = None, pose: str = "stand", arm: str = "down", child: float = 0.5
) -> Thing:
    """A person, or with this chance a child; maybe with a hat."""
    who = stage.add("child" if stage.rng.random() < child else "person", frame, on, pose=pose, arm=arm)
    if stage.rng.random() < 0.27:
        (x, y), (size, head) = who.point("head"), who.drawing.points["size"]
        hat = stage.add("hat", replace(frame, x=x, y=y, scale=frame.scale * size * head * 0.95), who, 0.03)
        stage.relate(who, "wearing", hat, 0.95)
    return who


def _hold(stage: Stage, who: Thing, label: str) -> None:
    """Puts a thing into somebody's hand, a balloon at the end of a string."""
    rng, scale = stage.rng, who.frame.scale
    x, y = who.point("hand")
    held = stage.add(label, Frame(x, y, scale, who.frame.flip), who, 0.02)
    if label == "balloon":
        rise = max(min(rng.uniform(0.6, 1.2) * scale, 0.7 * y), 0.25 * scale)
        end = (x + rng.uniform(-0.25, 0.25) * rise, y - rise)
        stage.strings.append(((x, y), end, who.order + 0.01))
        held.frame = Frame(*end, scale)
        held.floating = True
    else:
        held.frame = replace(held.frame, y=y + held.drawing.points["grip"][1] * scale)
    stage.relate(who, "holding", held)


def _near(stage: Stage, frame: Frame, side: float, far: tuple[float, float]) -> Frame:
    """A place on the ground at a thing's side, this many metres away."""
    y = frame.y + stage.rng.uniform(-0.12, 0.16) * frame.scale
    return stage.frame(frame.x + side * frame.scale * stage.rng.uniform(*far), y)


def _before_or_behind(stage: Stage, at: Thing, wide: float, weight: float, child: float = 0.5) -> None:
    """Somebody in front of or behind a large thing, up to `wide` metres from its middle."""
    rng, frame = stage.rng, at.frame
    before = rng.random() < 0.5
    y = frame.y + (0.3 if before else -0.4) * frame.scale
    spot = stage.frame(frame.x + rng.uniform(-wide, wide) * frame.scale, y)
    stage.relate(_somebody(stage, spot, child=child), "in front of" if before else "behind", at, weight)


def _walker(stage: Stage) -> None:
    """Somebody who walks or stands, with something in the hand, with a dog, with company, beside something."""
    rng = stage.rng
    held = _one_of(rng, HELD) if rng.random() < 0.7 else ""
    arm = ARM.get(held, "forward") if held else "down"
    who = _somebody(stage, stage.spot(1.0), pose=rng.choice(("stand", "walk")), arm=arm)
    if held:
        _hold(stage, who, held)
    side, luck = rng.choice((-1, 1)), rng.random()
    if luck < 0.34:
        other = stage.add("dog", _near(stage, who.frame, side, (0.7, 1.0)))
    elif luck < 0.5:
        other = stage.add(rng.choice(("ball", "bucket")), _near(stage, who.frame, side, (0.4, 0.6)))
    elif luck < 0.72:
        other = _somebody(stage, _near(stage, who.frame, side, (0.65, 1.0)), child=0.45)
    else:
        return
    stage.relate(*((who, "near", other) if rng.random() < 0.5 else (other, "near", who)), 0.6)


def _horse(stage: Stage) -> None:
    """A horse: ridden, led, or alone, maybe with a dog that looks like a small one."""
    rng = stage.rng
    horse = stage.add("horse", stage.spot(2.6))
    luck = rng.random()
    if luck < 0.55:
        seat = replace(horse.frame, x=horse.point("back")[0], y=horse.point("back")[1])
        stage.relate(_somebody(stage, seat, horse, "ride", "forward", child=0.25), "riding", horse, 0.97)
    elif luck < 0.85:
        _before_or_behind(stage, horse, 0.9, 0.6)
    if rng.random() < 0.35:
        dog = stage.add("dog", _near(stage, horse.frame, rng.choice((-1, 1)), (1.4, 2.0)))
        stage.relate(*((horse, "near", dog) if rng.random() < 0.5 else (dog, "near", horse)), 0.55)


def _gathering(stage: Stage, label: str) -> None:
    """A table or a bench with things on and under it and people about."""
    rng = stage.rng
    at = stage.add(label, stage.spot(2.3))
    frame = at.frame
    (x1, y), (x2, _) = at.point("left"), at.point("right")
    places = [x1 + (x2 - x1) * (k + 0.5) / 4 + rng.uniform(-6, 6) for k in range(4)]
    rng.shuffle(places)
    if label == "bench" and rng.random() < 0.55:
        x = places.pop()
        seat = Frame(x, y, frame.scale, rng.random() < 0.5)
        who = _somebody(stage, seat, at, "sit", rng.choice(("down", "forward")))
        stage.relate(who, "sitting on", at, 0.97)
        places = [p for p in places if abs(p - x) > 0.3 * frame.scale]
    for x in places[: rng.choice((1, 2, 2, 3, 3))]:
        kinds = ON[label if rng.random() > SURPRISE else "table" if label == "bench" else "bench"]
        item = stage.add(_one_of(rng, kinds), Frame(x, y, frame.scale, rng.random() < 0.5), at)
        stage.relate(item, "on", at, 0.85)
    if rng.random() < 0.45:
        below = Frame(frame.x + rng.uniform(-0.35, 0.35) * frame.scale, frame.y - 2, frame.scale * 0.85)
        stage.relate(stage.add(_one_of(rng, UNDER[label]), below, at, -0.05), "under", at, 0.9)
    for side in (-1, 1):
        if rng.random() < (0.42 if label == "table" else 0.25):
            _visitor(stage, at, side)


def _visitor(stage: Stage, at: Thing, side: int) -> None:
    """Somebody behind, beside or before the table or bench; at a table, with what belongs there in the hand."""
    rng, frame = stage.rng, at.frame
    where = rng.choices(("behind", "near", "in front of"), (4, 3, 1.2))[0]
    y = frame.y + {"behind": -0.3, "near": 0.02, "in front of": 0.3}[where] * frame.scale
    x = frame.x + side * frame.scale * (rng.uniform(1.15, 1.4) if where == "near" else rng.uniform(0.2, 0.6))
    held = at.label == "table" and rng.random() < 0.5
    who = _somebody(stage, replace(stage.frame(x, y), flip=side > 0), arm="forward" if held else "down")
    stage.relate(who, where, at, 0.75)
    if held:
        _hold(stage, who, _one_of(rng, HELD_AT_TABLE))


def _car(stage: Stage) -> None:
    """A car, maybe with somebody behind or in front of it."""
    at = stage.add("car", stage.spot(3.9))
    wheels = [stage.add("wheel", Frame(*at.point(f"wheel{k}"), at.frame.scale), at, 0.01) for k in (0, 1)]
    wheels[1].drawing = wheels[0].drawing  # the wheels of a car look the same
    for wheel in wheels:
        wheel.part_of = at.number
    stage.relate(at, "has", wheels[0], 0.6)
    stage.relate(wheels[1], "on", at, 0.55)
    if stage.rng.random() < 0.7:
        _before_or_behind(stage, at, 1.4, 0.8)


def _grove(stage: Stage) -> None:
    """Trees or bushes, with somebody or something under or behind them."""
    rng = stage.rng
    for _ in range(rng.choice((1, 1, 2))):
        label = "tree" if rng.random() < 0.58 else "bush"
        at = stage.add(label, stage.spot(2.2 if label == "tree" else 1.1))
        if rng.random() > 0.5:
            continue
        if label == "bush":
            _before_or_behind(stage, at, 0.5, 0.8, child=0.4)
            continue
        spot = _near(stage, at.frame, rng.choice((-1, 1)), (0.1, 0.5))
        if rng.random() < 0.6:
            below = _somebody(stage, spot, child=0.6)
        else:
            below = stage.add(_one_of(rng, UNDER["tree"]), spot)
        stage.relate(below, "under", at, 0.85)
