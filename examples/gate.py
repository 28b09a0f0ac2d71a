"""Let a job fail where a release shows too much.

python examples/gate.py && echo "may be shared"
"""

import sys

import privet
from privet.studies.applicants import applicants


def main(people: int = 3000, sigma: float = 60.0) -> bool:
    """Attack a release that adds noise to every number; whether it keeps its limits."""
    data = privet.load(applicants(people))
    release = privet.Noisy(sigma=sigma).fit(data, private="sex", utility="income")
    audit = privet.audit(release, data, utility="income", rebuild=False)
    checks = privet.gate(audit, max_accuracy={"sex": 0.65}, min_utility={"income": 0.55})
    for check in checks:
        print(check.line)
    return all(check.ok for check in checks)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
