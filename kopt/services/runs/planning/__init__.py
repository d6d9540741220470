"""What a run is planned from: device and GPU, the user's notes, and a first kernel where there is none."""
