/** A line of Holdfast's log that tells of an interruption or of its end. */
export interface LogLine {
  readonly msg: 'interrupted' | 'recovered';
  readonly attempt: number;
  readonly cause: string;
  readonly plan: string;
  /** `recovered`: silence the client felt. */
  readonly gap_ms?: number;
  /** `interrupted`: what was observed. */
  readonly evidence?: Readonly<Record<string, unknown>>;
  readonly status?: number;
}

const PLANS: Readonly<Record<string, string>> = {
  R1: 'R1 continue the text',
  R2: 'R2 finish with the closed calls',
  R3: 'R3 cut before the call',
  R4: 'R4 start again',
};

export const isTold = (line: object): line is LogLine =>
  'msg' in line && (line.msg === 'interrupted' || line.msg === 'recovered');

/** The line in words. */
export function narrated(line: LogLine): string {
  const { msg, attempt, cause, plan, gap_ms } = line;
  if (msg === 'recovered') return `attempt ${attempt}: goes on after ${gap_ms} ms`;
  return `attempt ${attempt}: ${cause} (${evidenceOf(line)}) → ${PLANS[plan] ?? plan}`;
}

function evidenceOf({ evidence = {}, status }: LogLine): string {
  switch (evidence.kind) {
    case 'transport':
      return String(evidence.code);
    case 'goaway':
      return `GOAWAY, code ${evidence.code}`;
    case 'clock':
      return `${evidence.clock} clock`;
    case 'clean_eof':
      return 'no finish reason';
    case 'error_event':
      return `error event, status ${status}`;
    default:
      return String(evidence.kind);
  }
}
