/** A figure of the shape: its name, and the allowed range. */
export interface Target {
  readonly name: string;
  readonly min?: number;
  readonly max: number;
}

/** The targets for the shape of the source, in the order in which `npm run shape` prints them. */
export const TARGETS = {
  event_files: { name: 'files that one healthy event passes', max: 18 },
  event_calls: { name: 'calls that one healthy event makes', max: 55 },
  reset_files: { name: 'files in addition for a TCP reset, until the answer continues', max: 28 },
  run_objects: { name: 'objects (class instances) that one open run holds', max: 14 },
  files: { name: 'files in src', max: 320 },
  lines: { name: 'lines in src', max: 32_000 },
  median_lines: { name: 'lines of the median file', min: 60, max: 120 },
  circles: { name: 'circles of folders, type imports included', max: 0 },
  order_violations: { name: 'imports against the order of the layers', max: 0 },
} as const satisfies Readonly<Record<string, Target>>;

export type Figure = keyof typeof TARGETS;

export function isMet(target: Target, measured: number): boolean {
  return measured >= (target.min ?? 0) && measured <= target.max;
}

/** The range as `≤ 55` or `60–120`. */
export function rangeText({ min, max }: Target): string {
  return min === undefined ? `≤ ${max}` : `${min}–${max}`;
}
