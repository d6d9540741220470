"""What a run will do: plan, workspace, hints, step 0, methods, when a version is accepted."""
