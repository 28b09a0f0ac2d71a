"""One leaderboard: the same people, the same released files, judged by our battery and by others'
(README of this folder: docs/peers.md)."""
