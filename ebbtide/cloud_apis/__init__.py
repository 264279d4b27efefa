"""Clients of the clouds' APIs: quotas with their limits, prices, and resources.

`interfaces` has what every cloud offers, one module for each cloud and purpose implements it, and `connect`
opens an implementation with the user's credentials. Imports need the extra `clouds`; `interfaces` and
`errors` do not.
"""
