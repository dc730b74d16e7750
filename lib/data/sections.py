"""Which sections of a paper are read."""


def choose_sections(names: list[str], count: int) -> list[int]:
    """Numbers of the sections that stay, in order (Cohan et al. 2018).

    From the first whose name has "intro" to the last whose name has "conclu" (where there are any);
    of those the first, the ones after it, and the last: `count` in all.
    """
    lowered = [name.lower() for name in names]
    first = next((i for i, name in enumerate(lowered) if "intro" in name), 0)
    last = max((i for i, name in enumerate(lowered) if "conclu" in name), default=len(names) - 1)
    span = list(range(first, last + 1)) if first <= last else list(range(len(names)))
    if len(span) <= count:
        return span
    return [*span[: count - 1], span[-1]] if count > 1 else span[:1]
