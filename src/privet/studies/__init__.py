"""Frontier: methods x budgets x seeds on one question, each cell learned, attacked and kept by its
content; `privet compare`.

study.py (what is asked) -> cells.py (one release to learn and attack, and its folder) -> run.py
(worker processes) -> table.py (rows).
"""
