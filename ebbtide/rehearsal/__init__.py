"""The stack on the real Pulumi engine and a real Kubernetes control plane, with a stand-in for the cloud, all
on this machine.

What is real: the engine, the API server with its controllers and scheduler, Kueue, Helm. What stands in: the
clouds' APIs, their node pools with autoscaler and queue for capacity, kubelets. A stand-in refuses what the
real one refuses, with its kind of message.
"""
