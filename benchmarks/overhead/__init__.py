"""Parts of `benchmarks.trainer_overhead`: the workloads, a loop written by hand, and Lightning."""
