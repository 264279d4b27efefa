"""A real Kubernetes control plane on this machine: etcd, API server, controllers, scheduler, kwok, and the
controllers of Kueue, Trainer, JobSet and Katib.

All processes listen on 127.0.0.1 and end with their parent, even if it is killed. Several control planes can
run in parallel. Parts of a cloud are faked: kubelets by kwok, the kubelet of pods whose program really runs
by `program_pods`, the storage driver by `volumes`, the network between control plane and cluster by `egress`.
"""
