export type FindingStatus = 'ok' | 'warn' | 'fail' | 'skipped';

/** What one check has seen. */
export interface Finding {
  /** `machine`, `ports`, `store`, or `upstream <name>`. */
  readonly subject: string;
  readonly name: string;
  readonly status: FindingStatus;
  readonly seen: string;
  /** What was measured; units last in the names. */
  readonly figures?: Readonly<Record<string, number | string | boolean>>;
  /** What to do about it. */
  readonly remedy?: string;
}

/** The findings of one subject, as they are made. */
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
