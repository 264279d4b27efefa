"""Compiled pipelines of Kubeflow Pipelines on Argo's controller, without Kubeflow Pipelines' own services.

`workflow` writes what the API server's compiler writes, `driver` and `launcher` are run in place of the
programs of those names, and `runs` is in place of the metadata store. Sources: kubeflow/pipelines 2.17.0,
backend/src/v2/compiler/argocompiler, driver and component.
"""
