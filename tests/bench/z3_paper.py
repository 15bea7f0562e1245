#!/usr/bin/python3
"""z3_paper.py - the optimal planner as the paper has it: Z3's Optimize over Booleans p(j, n) with PbEq and
PbLe, maximise Eq. 2. For `remap-bench peers`; needs the Debian package python3-z3.

    z3_paper.py MODEL LIMIT_MS     a model document with given affinities and one instance per service

Writes {"status": "optimal" | "feasible" | "unknown" | "absent", "seconds", "bound", "placement"}: the placement is
the index of each instance's host, null without one. Degrees are rounded to 1e-12 (the solver adds integers), memory
to MiB (coefficients of pseudo-Boolean constraints are 32 bits).
"""
import json
import sys
import time

SCALE = 10**12
MIB = 1 << 20


def integer(bound):
    """The value of a finite bound of an objective, else None."""
    try:
        return bound.as_long() / SCALE
    except (AttributeError, z3.Z3Exception):
        return None


def solve(model, limit_ms):
    hosts, instances = model["hosts"], model["instances"]
    place = {i["name"]: [z3.Bool(f"p({j},{n})") for n in range(len(hosts))] for j, i in enumerate(instances)}
    opt = z3.Optimize()
    opt.set("timeout", limit_ms)
    for p in place.values():
        opt.add(z3.PbEq([(b, 1) for b in p], 1))
    for n, host in enumerate(hosts):
        opt.add(z3.PbLe([(place[i["name"]][n], i["cpu_used_millis"]) for i in instances], host["cpu_cap_millis"]))
        opt.add(z3.PbLe([(place[i["name"]][n], -(-i["mem_used_bytes"] // MIB)) for i in instances],
                        host["mem_cap_bytes"] // MIB))
    score = []
    for row in model["affinities"]:
        degree = round(row["degree"] * SCALE)
        for a, b in zip(place[row["a"]], place[row["b"]]):
            score.append(z3.If(z3.And(a, b), degree, 0))
    goal = opt.maximize(z3.Sum(score))
    status = opt.check()
    # Cut short, Z3 4.8 has the ends of a maximised sum in each other's place: the larger is what it has not ruled out.
    ends = [integer(opt.lower(goal)), integer(opt.upper(goal))]
    out = {"status": "optimal" if status == z3.sat else "unknown", "bound": None if None in ends else max(ends),
           "placement": None}
    try:
        found = opt.model()
        placement = [[z3.is_true(found.eval(b)) for b in p] for p in place.values()]
        if all(sum(p) == 1 for p in placement):
            out["placement"] = [p.index(True) for p in placement]
            out["status"] = "optimal" if status == z3.sat else "feasible"
    except z3.Z3Exception:
        pass
    return out


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        model = json.load(file)
    start = time.monotonic()
    out = solve(model, int(sys.argv[2]))
    out["seconds"] = time.monotonic() - start
    print(json.dumps(out))


try:
    import z3
except ImportError:
    print(json.dumps({"status": "absent", "seconds": 0, "bound": None, "placement": None}))
else:
    main()
