/** A line of Holdfast's log that tells of a recovery. */
export interface LogLine {
  readonly msg: 'interrupted' | 'recovered' | 'run ended';
  readonly plan?: string;
  readonly cause?: string;
  readonly attempt?: number;
  readonly gap_ms?: number;
  readonly outcome?: string;
  readonly status?: number;
  readonly evidence?: Readonly<Record<string, unknown>>;
}

const PLANS: Readonly<Record<string, string>> = {
  R1: 'continue the text',
  R2: 'finish with the calls that are whole',
  R3: 'drop the cut call, continue the text',
  R4: 'start again',
  finish: 'the answer is as long as it may be',
  give_up: 'nothing can be done',
};

const TOLD: ReadonlySet<unknown> = new Set<LogLine['msg']>(['interrupted', 'recovered', 'run ended']);

export const isTold = (line: Record<string, unknown>): boolean => TOLD.has(line.msg);

/** The line in words; `undefined` for what is not worth a line. */
export function narrated({ msg, plan = '', cause, attempt, gap_ms, ...line }: LogLine): string | undefined {
  switch (msg) {
    case 'interrupted':
      return `attempt ${attempt}: ${cause} (${evidence(line)}) → ${plan} ${PLANS[plan] ?? ''}`.trimEnd();
    case 'recovered':
      return `attempt ${attempt}: goes on after ${gap_ms} ms`;
    case 'run ended':
      return undefined;
  }
}

function evidence({ evidence: seen = {}, status }: Pick<LogLine, 'evidence' | 'status'>): string {
  switch (seen.kind) {
    case 'transport':
      return String(seen.code);
    case 'goaway':
      return `GOAWAY, code ${seen.code}`;
    case 'clock':
      return `${seen.clock} clock`;
    case 'clean_eof':
      return 'end of stream without a finish reason';
    case 'error_event':
      return `error event, status ${status}`;
    default:
      return `${seen.kind}`;
  }
}
