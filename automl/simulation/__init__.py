"""What searches would do: samplers and pruners on tables, functions and finished studies, by a virtual clock."""
