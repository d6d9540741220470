"""What can be cited and how citations are checked: passages, specs, units, arithmetic, the vocabulary."""
