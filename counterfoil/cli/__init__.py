"""The command `counterfoil`: nouns then verbs, one module per noun (design section 10)."""
