"""Makes a script that shows a difference as small as it gets: delta debugging over sessions, clients, steps, acts, messages.

Must not know: databases. `shows(script)` says whether the difference is still there.
"""

from .script import Act


def smaller(script, shows, budget):
    """The smallest script found within so many tries."""
    tries = [budget]

    def test(candidate):
        if tries[0] <= 0:
            return False
        tries[0] -= 1
        return shows(candidate)

    before = None
    while before != script.to_text() and tries[0] > 0:
        before = script.to_text()
        script = without_sessions(script, test)
        script = without_clients(script, test)
        script = without_steps(script, test)
        script = apart(script, test)
        script = without_parts(script, test)
        script = fewer_servers(script, test)
    return script


def without_sessions(script, test):
    """Whole sessions, which restores stand between."""
    while True:
        cuts = [i for i, step in enumerate(script.steps) if step[0].what == "restore"]
        for begin, end in zip([0, *[c + 1 for c in cuts]], [*[c + 1 for c in cuts], len(script.steps)]):
            if cuts and test(candidate := script.with_steps(script.steps[:begin] + script.steps[end:])):
                script = candidate
                break
        else:
            return script


def without_clients(script, test):
    for name in script.clients():
        steps = [[act for act in step if act.client != name] for step in script.steps]
        steps = [step for step in steps if any(act.what != "wait" for act in step)]
        candidate = script.with_steps(steps)
        if len(script.clients()) > 1 and test(candidate):
            script = candidate
    return script


def without_steps(script, test):
    size = max(len(script.steps) // 2, 1)
    while True:
        at = 0
        while at < len(script.steps):
            candidate = script.with_steps(script.steps[:at] + script.steps[at + size:])
            if candidate.steps and test(candidate):
                script = candidate
            else:
                at += size
        if size == 1:
            return script
        size = max(size // 2, 1)


def apart(script, test):
    """Acts of a step are left out, or made steps of their own."""
    at = 0
    while at < len(script.steps):
        step = script.steps[at]
        if len(step) > 1:
            alone = [[act] for act in step if act.what != "wait"]
            if test(candidate := script.with_steps(script.steps[:at] + alone + script.steps[at + 1:])):
                script = candidate
                continue
            for i in range(len(step)):
                rest = step[:i] + step[i + 1:]
                if rest[0].what != "wait" and test(candidate := script.with_steps([*script.steps[:at], rest, *script.steps[at + 1:]])):
                    script = candidate
                    at -= 1
                    break
        at += 1
    return script


def without_parts(script, test):
    """Messages of a request, statements of a text; an extended request becomes a simple one; connections lose what they ask for."""
    for at in range(len(script.steps)):
        for i in range(len(script.steps[at])):
            again = True
            while again:
                again = False
                act = script.steps[at][i]
                for arg in simpler(act):
                    step = [*script.steps[at]]
                    step[i] = Act(act.client, act.what, arg, act.keeps)
                    if test(candidate := script.with_steps([*script.steps[:at], step, *script.steps[at + 1:]])):
                        script = candidate
                        again = True
                        break
    return script


def simpler(act):
    if act.what == "connect":
        for key in act.arg:
            yield {k: v for k, v in act.arg.items() if k != key}
    if act.what != "ask":
        return
    messages = act.arg
    if len(messages) > 1:
        texts = [m[2] for m in messages if m[0] == "P"]
        if len(texts) == 1 and "$1" not in texts[0]:
            yield [["Q", texts[0]]]
        for i in range(len(messages)):
            rest = messages[:i] + messages[i + 1:]
            # A request that ends without a Sync would never be answered.
            if rest[-1][0] in ("S", "Q", "F", "c", "f") or rest[-1][0] not in "PBDECH":
                yield rest
    for i, message in enumerate(messages):
        if message[0] == "Q" and "; " in message[1]:
            parts = message[1].split("; ")
            for j in range(len(parts)):
                yield [*messages[:i], ["Q", "; ".join(parts[:j] + parts[j + 1:])], *messages[i + 1:]]


def fewer_servers(script, test):
    for servers in range(1, script.servers):
        if test(candidate := script.with_servers(servers)):
            return candidate
    return script
