const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** `340ms`, `4.2s`, `3m05s`, `2h10m` */
export function durationText(duration_ms: number): string {
  const whole_ms = Math.max(0, Math.round(duration_ms));
  if (whole_ms < SECOND_MS) return `${whole_ms}ms`;
  if (whole_ms < MINUTE_MS) return `${(Math.floor(whole_ms / 100) / 10).toFixed(1)}s`;
  if (whole_ms < HOUR_MS) {
    const seconds = Math.floor((whole_ms % MINUTE_MS) / SECOND_MS);
    return `${Math.floor(whole_ms / MINUTE_MS)}m${String(seconds).padStart(2, '0')}s`;
  }
  const minutes = Math.floor((whole_ms % HOUR_MS) / MINUTE_MS);
  return `${Math.floor(whole_ms / HOUR_MS)}h${String(minutes).padStart(2, '0')}m`;
}
