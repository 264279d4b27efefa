"""In place of Pulumi's Kubernetes provider: a client of a real API server, and of the real helm and kubectl.

`provider` is what the engine talks to; `cluster` a cluster as its provider sees it; `making`, `changing` and
`removing` do what they say to an object and wait as the real provider waits (`readiness`, `waiting`);
`component` makes the children of charts and kustomizations. What the real provider does was read in the
sources of pulumi-kubernetes 4.32 (2026-07), which 4.34 is built on; each file names its part.
"""
