"""What can be cited and how a citation is checked: passages, specs, units, arithmetic, the vocabulary."""
