import { foldJournal } from '../../checkpoint/journal-fold.ts';
import type { NoteKey } from '../../checkpoint/notes.ts';
import type { Store, StoredRun } from '../../checkpoint/store.ts';
import { remember } from '../../lib/bounded-map.ts';
import { isObject, parsedJson } from '../../lib/json.ts';
import { estimatedTokens, tokenCount } from '../../plans/tokens.ts';
import type { RunContext } from '../run/context/run-context.ts';
import { storedStep } from './step-runs.ts';
import type { TaskEra, TaskRecords } from './task-records.ts';

/** The usage of answers: as their providers reported it, or an estimate of the delivered part. */
export interface TokenUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

/** The usage of a task's first steps, some of which may still grow. */
interface CountedSteps {
  /** The number of the last step counted. */
  readonly steps: number;
  /** Numbers of steps whose answers are incomplete. */
  readonly open: readonly number[];
  /** The usage of all other steps. */
  readonly settled: TokenUsage;
}

const NOTHING_USED: TokenUsage = { prompt_tokens: 0, completion_tokens: 0 };
const NOTHING_COUNTED: CountedSteps = { steps: 0, open: [], settled: NOTHING_USED };

/** Tasks whose sums this replica caches. */
const TASKS_MAX = 1000;
/** Maximum number of open steps; the oldest beyond it are not read again. */
const OPEN_MAX = 64;
/** Sums are stored at this interval, which limits how many steps another replica must read again. */
const NOTED_STEPS = 50;
const READ_AT_ONCE = 8;

/** The tokens used by tasks. Reads each complete answer only once. */
export class TaskUsage {
  readonly #store: Store;
  readonly #records: TaskRecords;
  readonly #ttl_ms: number;
  readonly #counted = new Map<string, CountedSteps>();

  constructor({ store, configuration }: Pick<RunContext, 'store' | 'configuration'>, records: TaskRecords) {
    this.#store = store;
    this.#records = records;
    this.#ttl_ms = configuration.checkpoint.ttl_s * 1000;
  }

  /** The current usage of all numbered steps. Rejects if the store does not answer. */
  async of(task: TaskEra): Promise<TokenUsage> {
    const key = JSON.stringify([task.owner, task.task, task.era]);
    const before = this.#counted.get(key) ?? (await this.#noted(task));
    const steps = await this.#records.lastStep(task, before.steps);
    const numbers = [...before.open, ...numbersBetween(before.steps, steps)];
    let { settled } = before;
    const open: { readonly number: number; readonly usage: TokenUsage }[] = [];
    for (let at = 0; at < numbers.length; at += READ_AT_ONCE) {
      const some = numbers.slice(at, at + READ_AT_ONCE);
      const read = await Promise.all(some.map((number) => this.#ofStep(task, number)));
      for (const { number, isWhole, usage } of read)
        if (isWhole) settled = sum(settled, usage);
        else open.push({ number, usage });
    }
    for (const { usage } of open.splice(0, open.length - OPEN_MAX)) settled = sum(settled, usage);
    const counted: CountedSteps = { steps, open: open.map(({ number }) => number), settled };
    remember(this.#counted, key, counted, TASKS_MAX);
    if (Math.floor(steps / NOTED_STEPS) > Math.floor(before.steps / NOTED_STEPS))
      await this.#store.notes.put(task.owner, usageNote(task), JSON.stringify(counted), this.#ttl_ms);
    return open.reduce((all, { usage }) => sum(all, usage), settled);
  }

  async forget(task: TaskEra): Promise<void> {
    await this.#store.notes.consume(task.owner, usageNote(task));
  }

  async #noted(task: TaskEra): Promise<CountedSteps> {
    const noted = await this.#store.notes.get(task.owner, usageNote(task));
    return noted === undefined ? NOTHING_COUNTED : countedIn(noted);
  }

  async #ofStep(task: TaskEra, number: number) {
    const [step] = await this.#records.steps(task, number, number);
    const found = step && (await storedStep(this.#store, task.owner, step.name));
    // A step that is no longer known can't change.
    const isWhole = step === undefined || found?.stored.status === 'complete';
    return { number, isWhole, usage: found ? usageOf(found.stored) : NOTHING_USED };
  }
}

/** A malformed note counts as absent. */
function countedIn(noted: string): CountedSteps {
  const counted = parsedJson(noted);
  if (!isObject(counted) || !Array.isArray(counted.open) || !isObject(counted.settled))
    return NOTHING_COUNTED;
  const { steps, open, settled } = counted;
  const { prompt_tokens, completion_tokens } = settled;
  const areNumbers = [steps, prompt_tokens, completion_tokens, ...open].every(Number.isSafeInteger);
  return areNumbers ? (counted as unknown as CountedSteps) : NOTHING_COUNTED;
}

/** The usage of one answer. */
export function usageOf({ records }: StoredRun): TokenUsage {
  const { usage, text, reasoning } = foldJournal(records);
  if (!usage) return { prompt_tokens: 0, completion_tokens: estimatedTokens(text.length + reasoning.length) };
  return {
    prompt_tokens: tokenCount(usage.prompt_tokens),
    completion_tokens: tokenCount(usage.completion_tokens),
  };
}

export const tokensOf = ({ prompt_tokens, completion_tokens }: TokenUsage): number =>
  prompt_tokens + completion_tokens;

const sum = (one: TokenUsage, other: TokenUsage): TokenUsage => ({
  prompt_tokens: one.prompt_tokens + other.prompt_tokens,
  completion_tokens: one.completion_tokens + other.completion_tokens,
});

/** The numbers after `first`, up to `last`. */
const numbersBetween = (first: number, last: number): number[] =>
  Array.from({ length: Math.max(0, last - first) }, (_, index) => first + 1 + index);

const usageNote = ({ task, era }: TaskEra): NoteKey => ({
  kind: 'task_usage',
  name: JSON.stringify([task, era]),
});
