"""What an evaluation leaves behind: the receipt and its parts."""
