/** Microseconds of the machine's monotonic clock, which every process on it shares. */
export function micros(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e6 + Math.round(nanoseconds / 1e3);
}
