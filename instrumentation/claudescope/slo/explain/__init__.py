"""Why a budget burns: which slice of the events, which node of the runs, and how sure that is."""
