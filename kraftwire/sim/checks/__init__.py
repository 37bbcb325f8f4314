"""The invariants S1 to S21 of a cluster of replicas, whatever world it lives in."""
