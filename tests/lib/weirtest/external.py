"""Runs a test program in another language against a target.

The program is told where by T_HOST, T_PORT, T_USER, T_PASSWORD, T_DB, T_KIND and T_WAY and prints one JSON object a line:
{"name": ..., "ok": bool, "seen": anything, "error": text, "skip": text}.
"""

import json
import os
import subprocess

from .weir import ROOT

DEADLINE_S = 110


def run_program(argv, target, env=None):
    """Results as `case.externals` wants them."""
    told = {"T_HOST": target.host, "T_PORT": str(target.port), "T_USER": target.user, "T_PASSWORD": target.password,
            "T_DB": target.database, "T_KIND": target.kind, "T_WAY": target.way}
    done = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, **told, **(env or {})}, timeout=DEADLINE_S, check=False)
    results = []
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.startswith("{"):
            r = json.loads(line)
            error = None if r.get("ok") else r.get("error") or "failed without a word"
            results.append((r["name"], r.get("seen"), error, r.get("skip")))
    stderr = done.stderr.decode(errors="replace").strip()
    if done.returncode != 0 or not results:
        results.append(("program", None, f"ended with {done.returncode}: {stderr[-3000:]}", None))
    return results


def go(suite, target, env=None):
    return run_program([os.path.join(ROOT, "target/go/weir-drivers"), suite], target, env)


def node(script, target, env=None):
    return run_program(["node", os.path.join(ROOT, "drivers/node", script)], target,
                       {"NODE_PATH": os.path.join(ROOT, "target/node/node_modules"), **(env or {})})
