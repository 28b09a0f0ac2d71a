"""Exchange: a collector asks, participants run the release where their data is, and only what it
lets through is sent.

The collector's server: app.py (what it answers), store.py (rows), blobs.py (records), commits.py
(acknowledged means durable), checks.py (what is not a release is refused), limits.py, retention.py.
The owner's half: campaigns.py, export.py, task.py. The participant's half: share.py, outbox.py,
metadata.py. What both sides speak: manifest.py (signed), envelope.py, seal.py.

Everything here knows a release through its card and its ONNX graph alone.
"""
