"""`kopt sass` and `kopt occupancy`."""
