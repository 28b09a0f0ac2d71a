"""A release as a step of a scikit-learn pipeline.

python examples/sklearn_pipeline.py
"""

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

import privet
from privet.sklearn import Privatizer
from privet.studies.applicants import applicants


def main(people: int = 4000, epochs: int = 30) -> float:
    """Hide sex, learn income from what is left; how often the pipeline is right."""
    table = applicants(people)
    X, income = table.drop(columns="income"), table["income"]
    X, X_new, income, income_new = train_test_split(X, income, random_state=0)

    hedge = privet.Hedge(target=0.7, dims=1, epochs=epochs, width=0.2)
    pipeline = make_pipeline(Privatizer(hedge, private="sex"), LogisticRegression())
    right = float(pipeline.fit(X, income).score(X_new, income_new))
    print(f"The pipeline is right about {right:.0%} of new people.")
    return right


if __name__ == "__main__":
    main()
