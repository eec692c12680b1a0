"""Reports on policies: listings, descriptions, effective tables, explanations, lint, decision tables, CRDs."""
