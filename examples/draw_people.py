"""Draw a table of people, as a stand-in for one of your own.

python examples/draw_people.py people.csv 4000
"""

import sys
from pathlib import Path

from privet.studies.applicants import applicants


def main(path: Path, people: int = 4000) -> None:
    """Write so many drawn people to a CSV file."""
    applicants(people).to_csv(path, index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 4000)
