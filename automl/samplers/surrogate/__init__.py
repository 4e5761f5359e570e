"""The parts of `surrogate_evolution`: configurations as numbers, what is learned from them, and what is proposed."""
