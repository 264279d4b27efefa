"""Values with one format each: quantities, durations, paths, the time, users' files and documents."""
