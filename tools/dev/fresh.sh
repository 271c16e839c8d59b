command_fresh() { die "fresh: not there yet"; }
