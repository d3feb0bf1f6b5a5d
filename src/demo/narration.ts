const TOLD = ['interrupted', 'recovered', 'taken over'] as const;

/** A line of Holdfast's log that tells of an interruption or of its end. */
export interface LogLine {
  readonly msg: (typeof TOLD)[number];
  readonly attempt: number;
  readonly cause: string;
  readonly plan: string;
  /** `recovered`: silence the client felt. */
  readonly gap_ms?: number;
  /** `interrupted`: what was observed. */
  readonly evidence?: Readonly<Record<string, unknown>>;
  readonly status?: number;
  /** `taken over`: the last event that the store has. */
  readonly from?: number;
}

const PLANS: Readonly<Record<string, string>> = {
  R1: 'R1 continue the text',
  R2: 'R2 finish with the closed calls',
  R3: 'R3 cut before the call',
  R4: 'R4 start again',
};

export const isTold = (line: object): line is LogLine =>
  'msg' in line && TOLD.some((msg) => msg === line.msg);

/** The line in words. */
export function narrated(line: LogLine): string {
  const { msg, attempt, cause, plan, gap_ms, from } = line;
  if (msg === 'taken over') return `the other replica takes the run over, after event ${from}`;
  if (msg === 'recovered') return `attempt ${attempt}: continues after ${gap_ms} ms`;
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
    case 'replica_lost':
      return 'the replica was lost';
    case 'clean_eof':
      return 'no finish reason';
    case 'error_event':
      return `error event, status ${status}`;
    default:
      return String(evidence.kind);
  }
}
