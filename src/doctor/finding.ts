export type FindingStatus = 'ok' | 'warn' | 'fail' | 'skipped';

/** The result of one check. */
export interface Finding {
  /** `machine`, `ports`, `store`, or `upstream <name>`. */
  readonly subject: string;
  readonly name: string;
  readonly status: FindingStatus;
  readonly seen: string;
  /** The measurements; each name ends with its unit. */
  readonly figures?: Readonly<Record<string, number | string | boolean>>;
  /** What to do about it. */
  readonly remedy?: string;
}

/** Collects the findings of one subject. */
export class Findings {
  readonly all: Finding[] = [];
  readonly #subject: string;

  constructor(subject: string) {
    this.#subject = subject;
  }

  ok(name: string, seen: string, figures?: Finding['figures']): Finding {
    return this.#add({ name, status: 'ok', seen, ...(figures && { figures }) });
  }

  warn(name: string, seen: string, remedy: string, figures?: Finding['figures']): Finding {
    return this.#add({ name, status: 'warn', seen, ...(figures && { figures }), remedy });
  }

  fail(name: string, seen: string, remedy: string, figures?: Finding['figures']): Finding {
    return this.#add({ name, status: 'fail', seen, ...(figures && { figures }), remedy });
  }

  skip(name: string, seen: string, remedy?: string): Finding {
    return this.#add({ name, status: 'skipped', seen, ...(remedy !== undefined && { remedy }) });
  }

  #add(found: Omit<Finding, 'subject'>): Finding {
    const finding = { subject: this.#subject, ...found };
    this.all.push(finding);
    return finding;
  }
}

/** The work exceeded its time limit. */
class TookTooLong extends Error {
  override readonly name = 'TookTooLong';

  constructor(limit_ms: number) {
    super(`no answer within ${limit_ms / 1000} s`);
  }
}

/** Rejects with {@link TookTooLong} if the work exceeds the limit. The signal aborts then, and also when the work ends. */
export async function bounded<Result>(
  limit_ms: number,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const ending = new AbortController();
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new TookTooLong(limit_ms)), limit_ms);
  try {
    return await Promise.race([work(ending.signal), late]);
  } finally {
    clearTimeout(timer);
    ending.abort();
  }
}

/** An error's code if it has one, since a code says more than most messages; otherwise the message. */
export function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  if (typeof code === 'string') return code;
  return error instanceof Error ? error.message : String(error);
}

/** The median and the maximum of some durations, rounded to a tenth of a millisecond. */
export function latencies(durations_ms: readonly number[]): {
  readonly p50_ms: number;
  readonly max_ms: number;
} {
  const sorted = [...durations_ms].sort((one, other) => one - other);
  return { p50_ms: rounded_ms(sorted[sorted.length >> 1] ?? 0), max_ms: rounded_ms(sorted.at(-1) ?? 0) };
}

export const rounded_ms = (duration_ms: number): number => Math.round(duration_ms * 10) / 10;
