from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vaeiw_jax.errors import UserError
from vaeiw_jax.features import FeaturesConfig, Setting, bprost, create

GAMES = ["Pong", "Breakout", "MsPacman", "SpaceInvaders", "Alien", "Seaquest", "Qbert", "Freeway"]


def slow_basic(screen):
    """(column, row, colour) of every colour in every tile."""
    return {
        (c, r, int(pixel) >> 1)
        for r in range(14)
        for c in range(16)
        for pixel in set(screen[15 * r : 15 * r + 15, 10 * c : 10 * c + 10].ravel().tolist())
    }


def slow_atoms(screen, previous=None):
    """The definition, pair by pair."""
    now = slow_basic(screen)
    found = {(14 * c + r) * 128 + p for c, r, p in now}
    for c1, r1, p1 in now:
        for c2, r2, p2 in now:
            if p1 > p2:
                continue  # the other order of the same pair is oriented as it should be
            dc, dr = c1 - c2, r1 - r2
            if p1 < p2:
                pair = p1 * 127 - p1 * (p1 + 1) // 2 + p2 - 1
                index = ((15 + dc) * 27 + 13 + dr) * 8128 + pair
            elif dc > 0:
                index = 6_803_136 + ((dc - 1) * 27 + 13 + dr) * 128 + p1
            elif dc == 0 and dr > 0:
                index = 6_803_136 + 51_840 + (dr - 1) * 128 + p1
            elif dc == 0 and dr == 0:
                index = 6_856_640 + p1
            else:
                continue  # turned round, it is one of the two above
            found.add(28_672 + index)
    for c1, r1, p1 in now:
        for c2, r2, p2 in slow_basic(previous) if previous is not None else ():
            place = (15 + c1 - c2) * 27 + 13 + r1 - r2
            found.add(28_672 + 6_856_768 + (place * 128 + p1) * 128 + p2)
    return found


def check(screen, previous=None):
    atoms = bprost.atoms(screen, previous)
    assert atoms.dtype == np.int32
    assert len(atoms) == len(set(atoms.tolist()))
    assert set(atoms.tolist()) == slow_atoms(screen, previous)
    assert atoms.min() >= 0
    assert atoms.max() < 20_598_848


def test_the_sets_have_the_sizes_of_the_paper():
    assert bprost.NUM_BASIC == 28_672
    assert bprost.NUM_BPROS == 6_856_768
    assert bprost.NUM_BPROT == 13_713_408
    assert bprost.SETS["bprost"] == 20_598_848


@pytest.mark.parametrize("game", GAMES)
def test_atoms_of_real_screens_are_those_of_the_double_loop(game, real_screens):
    screens = real_screens(game, 25)
    check(screens[0])
    check(screens[12], screens[11])
    check(screens[24], screens[23])


@st.composite
def random_screens(draw):
    """Blocks of a few colours, from flat screens to noise, the corners of the palette included."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    palette = rng.choice(256, size=draw(st.integers(1, 6)))
    palette[0] = draw(st.sampled_from([0, 1, 255, int(palette[0])]))
    block = draw(st.sampled_from([70, 30, 10]))
    rows, columns = -(-210 // block), -(-160 // block)
    coarse = rng.choice(palette, size=(rows, columns)).astype(np.uint8)
    return np.ascontiguousarray(np.kron(coarse, np.ones((block, block), np.uint8))[:210, :160])


@settings(max_examples=25, deadline=None)
@given(random_screens(), st.none() | random_screens())
def test_atoms_of_random_screens_are_those_of_the_double_loop(screen, previous):
    check(screen, previous)


def test_a_screen_of_one_colour_by_hand():
    atoms = set(bprost.atoms(np.full((210, 160), 2 * 5, np.uint8)).tolist())
    assert len([a for a in atoms if a < 28_672]) == 14 * 16
    assert all(a % 128 == 5 for a in atoms if a < 28_672)
    assert len(atoms) == 14 * 16 + 15 * 27 + 13 + 1  # basic; aside; straight below; the tile itself


def test_the_smaller_sets_are_the_beginnings_of_the_larger(real_screens):
    before, now = real_screens("Seaquest", 2)
    basic, bpros, whole = (
        set(bprost.atoms(now, before, name).tolist()) for name in ("basic", "bpros", "bprost")
    )
    assert basic == {a for a in whole if a < bprost.SETS["basic"]}
    assert bpros == {a for a in whole if a < bprost.SETS["bpros"]}
    assert basic < bpros < whole


def test_the_feature_set_looks_at_the_previous_screen_only_for_bprot(real_screens):
    class Seen:
        def __init__(self, screen):
            self.screen, self.ram = screen, None

    before, now = (Seen(screen) for screen in real_screens("Pong", 2))
    for name in ("basic", "bpros", "bprost"):
        chosen = create(FeaturesConfig(name), Setting("Pong", (210, 160)))
        assert chosen.num_features == bprost.SETS[name]
        with_previous, without = chosen.atoms(now, before), chosen.atoms(now, None)
        assert (len(with_previous) > len(without)) == (name == "bprost")


def test_the_background_is_what_never_changed():
    screens = np.zeros((3, 210, 160), np.uint8)
    screens[:, 0, 0] = 8
    screens[1, 0, 1] = 6
    background = bprost.background(screens)
    assert background[0, 0] == 8
    assert background[0, 1] == bprost.NO_BACKGROUND
    assert background[5, 5] == 0


def test_masked_pixels_count_as_colour_zero(real_screens):
    screens = real_screens("MsPacman", 30)
    background = bprost.background(screens)
    masked = np.where(screens[7] == background, 0, screens[7]).astype(np.uint8)
    assert (masked == 0).mean() > 0.5
    atoms = bprost.atoms(screens[7], None, "bprost", background)
    assert set(atoms.tolist()) == slow_atoms(masked)


def test_a_subtracted_background_leaves_pixels_below_it_as_they_are(real_screens):
    screens = real_screens("Seaquest", 30)
    background = bprost.background(screens[-7:])
    now, before = screens[3].copy(), screens[2]
    now[0, :3] = [10, 20, 6]
    background[0, :3] = [6, 20, 10]  # above its background, equal to it, below it
    background[0, 3] = bprost.NO_BACKGROUND

    def subtracted(screen):
        known = np.maximum(background, 0)
        return np.where(screen >= known, screen - known, screen).astype(np.uint8)

    assert subtracted(now)[0, :4].tolist() == [4, 0, 6, now[0, 3]]
    assert (subtracted(now) != np.where(now == background, 0, now)).any()  # as masking does not
    atoms = bprost.atoms(now, before, "bprost", background, subtract=True)
    assert set(atoms.tolist()) == slow_atoms(subtracted(now), subtracted(before))
    config = FeaturesConfig("bprost", background_subtract=True)
    chosen = create(config, Setting("Seaquest", (210, 160), background))
    seen, previous = SimpleNamespace(screen=now), SimpleNamespace(screen=before)
    assert set(chosen.atoms(seen, previous).tolist()) == set(atoms.tolist())


def test_a_background_is_masked_or_subtracted_not_both():
    with pytest.raises(UserError, match="two ways to treat a background"):
        FeaturesConfig("bprost", background_mask=True, background_subtract=True)


def test_another_screen_size_is_refused_by_name():
    with pytest.raises(UserError, match=r"210 x 160 pixels, and that of KingKong has 250 x 160"):
        create(FeaturesConfig("basic"), Setting("KingKong", (250, 160)))
