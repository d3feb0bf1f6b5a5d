/** The proxy's own metrics at one moment. */
export interface Sample {
  /** Minutes since the start of the soak. */
  readonly minutes: number;
  readonly heap_bytes: number;
  readonly resident_bytes: number;
  readonly open_fds: number;
  readonly handles: number;
  readonly active_runs: number;
  readonly interruptions: number;
  readonly recoveries: number;
  readonly checkpoint_errors: number;
}

export async function takeSample(admin_port: number, started_ms: number): Promise<Sample> {
  const response = await fetch(`http://127.0.0.1:${admin_port}/metrics`);
  const metrics = sumByName(await response.text());
  const value = (name: string) => metrics.get(name) ?? 0;
  return {
    minutes: (performance.now() - started_ms) / 60_000,
    heap_bytes: value('nodejs_heap_size_used_bytes'),
    resident_bytes: value('process_resident_memory_bytes'),
    open_fds: value('process_open_fds'),
    handles: value('nodejs_active_handles_total'),
    active_runs: value('holdfast_runs_active'),
    interruptions: value('holdfast_interruptions_total'),
    recoveries: value('holdfast_recoveries_total'),
    checkpoint_errors: value('holdfast_checkpoint_errors_total'),
  };
}

/** Sums the series of each metric in a Prometheus text. */
function sumByName(text: string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const line of text.split('\n')) {
    const [, name, value] = /^([a-z_]+)(?:\{.*\})? (\S+)/.exec(line) ?? [];
    if (name !== undefined) sums.set(name, (sums.get(name) ?? 0) + Number(value));
  }
  return sums;
}
