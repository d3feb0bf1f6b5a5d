const TOLD = ['interrupted', 'recovered', 'taken over'] as const;

/** A line of Holdfast's log about an interruption or a recovery. */
export interface LogLine {
  readonly msg: (typeof TOLD)[number];
  readonly attempt: number;
  readonly cause: string;
  readonly plan: string;
  /** `recovered`: how long the client received nothing. */
  readonly gap_ms?: number;
  /** `interrupted`: the observed evidence. */
  readonly evidence?: Readonly<Record<string, unknown>>;
  readonly status?: number;
  /** `taken over`: the last stored event. */
  readonly from?: number;
}

const PLANS: Readonly<Record<string, string>> = {
  R1: 'R1: asks for the rest of the text',
  R2: 'R2: finishes with the calls that are complete',
  R3: 'R3: asks again from before the call',
  R4: 'R4: starts again',
};

export const isTold = (line: object): line is LogLine =>
  'msg' in line && TOLD.some((msg) => msg === line.msg);

/** A line for the viewer: red for a cut, yellow while the client waits, green when the answer continues. */
export interface Remark {
  readonly text: string;
  readonly style: 'red' | 'yellow' | 'green';
}

/** Describes the log line in words, in display order. */
export function narrated(line: LogLine): readonly Remark[] {
  const { msg, attempt, cause, plan, gap_ms, from } = line;
  if (msg === 'taken over')
    return [{ text: `… the other replica takes over after event ${from}`, style: 'yellow' }];
  if (msg === 'recovered')
    return [{ text: `▶ attempt ${attempt} resumes the answer after ${gap_ms} ms`, style: 'green' }];
  return [
    { text: `✂ attempt ${attempt}: ${cause.replaceAll('_', ' ')} (${evidenceOf(line)})`, style: 'red' },
    { text: `… ${PLANS[plan] ?? plan}`, style: 'yellow' },
  ];
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
