"""Whether a script is fair: that with its number of servers nobody has to wait for a server that another client rightly keeps.

By what the play on the database itself showed; a script made smaller must be as fair as the one it came from.
"""


def fair(script, play):
    holders = set()
    kept = set()
    for step, statuses in zip(play.steps, play.statuses):
        before = set(holders)
        acting = set()
        for act in step:
            if act.what == "restore":
                holders, kept, before = set(), set(), set()
                continue
            if not act.client:
                continue
            acting.add(act.client)
            if act.keeps:
                kept.add(act.client)
            if act.what in ("quit", "vanish"):
                kept.discard(act.client)
        for name, status in statuses.items():
            if status is None:
                kept.discard(name)
            if name in kept or status not in (None, "I"):
                holders.add(name)
            else:
                holders.discard(name)
        becoming = holders - before
        passing = acting - before - becoming
        if len(before | holders) > script.servers:
            return False
        if passing and len(before) + len(becoming) >= script.servers and any(act.what not in ("quit", "vanish") for act in step):
            return False
    return True
