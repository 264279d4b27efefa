"""Compiled pipelines of Kubeflow Pipelines on Argo's controller, without Kubeflow Pipelines' own services.

`workflow` replaces the API server's compiler, `driver` and `launcher` the programs of those names, and the
latter the metadata store. Sources: kubeflow/pipelines 2.17.0, backend/src/v2/compiler/argocompiler, driver
and component.
"""
