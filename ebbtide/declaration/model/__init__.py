"""Declaration of a cluster with its pools, queues, teams and add-ons, and its validation."""
