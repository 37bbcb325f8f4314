"""Clusters without time: any message, timer, flush or crash may come next."""
