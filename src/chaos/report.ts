import { type Fault, faultName, placeText } from './fault.ts';

export interface FaultReport {
  /** Number of the request, from 1. */
  readonly request: number;
  readonly path: string;
  readonly fault: Fault;
  /** How much of the answer the client received before the fault; absent if the fault replaced the answer. */
  readonly after?: { readonly unit: 'characters' | 'bytes'; readonly count: number };
  /** Why the fault didn't strike; absent if it did. */
  readonly missed?: string;
}

/** Counts since the start. */
export interface Totals {
  /** Requests for answers, on any wire. */
  requests: number;
  faults: number;
  missed: number;
  /** Faults that struck, by name. */
  readonly by_fault: Record<string, number>;
}

export const noTotals = (): Totals => ({ requests: 0, faults: 0, missed: 0, by_fault: {} });

/** Adds a fault's outcome to the totals. */
export function addTo(totals: Totals, { fault, missed }: FaultReport): void {
  if (missed !== undefined) {
    totals.missed++;
    return;
  }
  const name = faultName(fault);
  totals.faults++;
  totals.by_fault[name] = (totals.by_fault[name] ?? 0) + 1;
}

/** The report as an object for JSON. */
export const faultDocument = (report: FaultReport, seed: number): object => ({
  event: 'fault',
  request: report.request,
  path: report.path,
  ...faultFields(report),
  seed,
});

/** The fault and its outcome, for JSON. */
export function faultFields({ fault, after, missed }: FaultReport): object {
  const place = placeText(fault);
  return {
    fault: faultName(fault),
    ...(place !== undefined && { place }),
    ...(fault.kind === 'stall' && { duration_ms: fault.duration_ms }),
    ...(after && { [`after_${after.unit}`]: after.count }),
    ...(missed !== undefined && { missed }),
  };
}

/** The report as one line of text. */
export function faultLine(report: FaultReport, seed: number): string {
  const { request, path, fault, after, missed } = report;
  const place = placeText(fault);
  const placed = place === undefined ? '' : ` at ${place}`;
  const long = fault.kind === 'stall' ? ` of ${fault.duration_ms} ms` : '';
  const came =
    missed !== undefined ? `: missed, ${missed}` : after ? `, after ${after.count} ${after.unit}` : '';
  return `request ${request}: ${faultName(fault)}${long}${placed}${came} (${path}, seed ${seed})`;
}

export function totalsLine({ requests, faults, missed, by_fault }: Totals, seed: number): string {
  const each = Object.entries(by_fault).map(([name, count]) => `${count} ${name}`);
  const told = each.length > 0 ? ` (${each.join(', ')})` : '';
  return `${requests} requests, ${faults} faults${told}, ${missed} missed, seed ${seed}`;
}
