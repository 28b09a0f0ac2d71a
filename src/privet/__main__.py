"""`python -m privet` is the same as `privet`."""

from privet.cli import main

main()
