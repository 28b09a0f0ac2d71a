"""Exchange: a collector asks, participants run the release where their data is, and only what it
lets through is sent.

- `protocol`: what the others agree on: signed manifests, sealed envelopes, messages, requests.
- `collector`: the server, which acknowledges only what is durable.
- `owner`: opens campaigns, exports what came, trains a task model.
- `participant`: checks a campaign, runs its release, sends, withdraws.

Everything here knows a release through its card and its ONNX graph alone.
"""
