"""Clients of the clouds' APIs: quotas with their limits, prices, and resources.

`interfaces` has the common interface of every cloud, implemented by a module for each cloud and purpose;
`connect` opens an implementation with the user's credentials. Imports need the extra `clouds`, except those
of `interfaces`.
"""
