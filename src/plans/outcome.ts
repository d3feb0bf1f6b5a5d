/**
 * How a run ended here; the `outcome` label of `holdfast_runs_total`. `superseded`: another replica took it over.
 * `handed_over`: this one shut down and let it go. `replayed`: all of it was in the store.
 */
export type Outcome =
  | 'complete'
  | 'recovered'
  | 'salvaged'
  | 'failed'
  | 'rejected'
  | 'cancelled'
  | 'superseded'
  | 'handed_over'
  | 'replayed';
