"""A table, a file that can be shared, and the recipient's model.

python examples/share_a_table.py FOLDER
"""

import sys
from pathlib import Path

import pandas as pd
from sklearn.linear_model import LogisticRegression

import privet
from privet.studies.applicants import applicants


def main(folder: Path, people: int = 4000, epochs: int = 30) -> float:
    """Share a table without sex; how often the recipient's model is right about new people."""
    everybody = applicants(people + 1000)
    ours, new = everybody[:people], everybody[people:]
    ours.to_csv(folder / "people.csv", index=False)

    # Where the data is: learn, attack, write.
    method = privet.Hedge(target=0.65, dims=1, epochs=epochs, width=0.2)
    privet.learn(method, folder / "people.csv", "sex", "income", out=folder / "release")
    privet.audit(
        folder / "release",
        folder / "people.csv",
        utility="income",
        keep="income",
        out=folder / "release",
    )
    privet.apply(
        folder / "release",
        folder / "people.csv",
        folder / "shared.csv",
        keep="income",
        accept="income",
    )

    # At the recipient: z0 is a number for a model, beside the label it is to learn.
    shared = pd.read_csv(folder / "shared.csv")
    model = LogisticRegression().fit(shared[["z0"]].to_numpy(), shared["income"])
    # New people run the same release on their own row.
    released = privet.Release.load(folder / "release").transform(new)
    right = float(model.score(released.to_numpy(), new["income"]))
    print(f"The recipient's model is right about {right:.0%} of new people.")
    return right


if __name__ == "__main__":
    main(Path(sys.argv[1]))
