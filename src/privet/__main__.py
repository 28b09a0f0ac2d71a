"""`python -m privet` is the same as `privet`."""

from privet.cli.main import main

main()
