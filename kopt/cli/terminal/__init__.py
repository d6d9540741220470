"""What a terminal gets and a pipe does not: paging, links, folded lines; and completion for shells."""
