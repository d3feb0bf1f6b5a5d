import type { Evidence } from '../interrupts/interruption.ts';
import { CONTROLS } from '../lib/text.ts';
import type { Time } from '../lib/time.ts';
import type {
  ObservedAttempt,
  ObservedAttemptEnd,
  ObservedEnd,
  ObservedPlan,
  ObservedRun,
  RunObservation,
} from '../proxy/run/context/run-observer.ts';
import {
  type RunDetail,
  type RunState,
  type RunSummary,
  STATUS_VERSION,
  type TimelineEntry,
} from './snapshot.ts';

const MODEL_CHARACTERS_MAX = 80;
const FINISH_CHARACTERS_MAX = 40;
/** Codes are short; what is longer is none. */
const DETAIL_CHARACTERS_MAX = 60;
/** Of the end of the answer, where content is shown. */
const TEXT_CHARACTERS_MAX = 4000;
/** A run has a handful of entries; one that is tried a hundred times shows its first and its latest ones. */
const ENTRIES_MAX = 60;
const FIRST_KEPT = 12;

/** What a board needs of its runs. */
export interface BoardEvents {
  /** Something but the length of its answer has changed. */
  changed(run: BoardRun, entry: TimelineEntry): void;
  interrupted(upstream: string, interruption: NonNullable<ObservedAttemptEnd['interruption']>): void;
  recovered(gap_ms: number): void;
  ended(run: BoardRun, outcome: ObservedEnd['outcome']): void;
}

interface WatchedRunOptions {
  readonly key: number;
  readonly time: Time;
  /** Whether text may be kept and shown. */
  readonly content: boolean;
}

/** One run on the status page, from its beginning here until it is forgotten. */
export class BoardRun implements RunObservation {
  readonly key: number;
  readonly #time: Time;
  readonly #content: boolean;
  readonly #board: BoardEvents;
  /** What happened to it, in order. */
  readonly #timeline: TimelineEntry[] = [];
  #omitted = 0;
  /** What does not change. */
  readonly #facts: Pick<
    RunSummary,
    'run' | 'wire' | 'model' | 'created_at_ms' | 'streamed' | 'resumable' | 'taken_over'
  >;
  /** Gone once the run has ended, so that its answer can be. */
  #answer: ObservedRun['answer'] | undefined;
  #characters = 0;
  #tool_calls = 0;
  #text = '';
  #upstream: string;
  #attempt = 0;
  #state: RunState = 'asking';
  #state_at_ms: number;
  #interruptions = 0;
  #recovering: boolean = false;
  #cause: RunSummary['cause'];
  #plan: RunSummary['plan'];
  #outcome: RunSummary['outcome'];

  constructor(observed: ObservedRun, { key, time, content }: WatchedRunOptions, board: BoardEvents) {
    const { run, wire, model, upstream, created_at_ms, streamed, resumable, taken_over, answer } = observed;
    this.key = key;
    this.#time = time;
    this.#content = content;
    this.#board = board;
    this.#facts = {
      run,
      wire,
      model: shownText(model, MODEL_CHARACTERS_MAX),
      created_at_ms,
      streamed,
      resumable,
      taken_over: taken_over !== undefined,
    };
    this.#upstream = upstream;
    this.#answer = answer;
    this.#state_at_ms = time.wall();
    if (taken_over) this.#add({ kind: 'taken_over', at_ms: this.#state_at_ms, ...taken_over });
  }

  get run(): RunSummary['run'] {
    return this.#facts.run;
  }

  get isRecovering(): boolean {
    return this.#recovering;
  }

  get characters(): number {
    return this.#answer?.characters ?? this.#characters;
  }

  get tool_calls(): number {
    return this.#answer?.tool_calls ?? this.#tool_calls;
  }

  attempt({ attempt, upstream, mode, asked_model, compressed }: ObservedAttempt): undefined {
    this.#attempt = attempt;
    this.#upstream = upstream;
    this.#enter('asking', {
      kind: 'attempt',
      attempt,
      upstream,
      mode,
      model: shownText(asked_model, MODEL_CHARACTERS_MAX),
      compressed: compressed !== undefined,
    });
  }

  answering(): void {
    this.#recovering = false;
    this.#enter('answering', { kind: 'answering', attempt: this.#attempt });
  }

  attemptEnded({ added, seam, interruption }: ObservedAttemptEnd): void {
    const told = { attempt: this.#attempt, added, ...(seam !== undefined && { seam }) };
    if (!interruption) {
      this.#enter('finishing', { kind: 'whole', ...told });
      return;
    }
    const { cause, phase, evidence, status } = interruption;
    const detail = evidenceDetail(evidence);
    const upstream = this.#upstream;
    this.#interruptions++;
    this.#recovering = true;
    this.#cause = cause;
    this.#plan = undefined;
    this.#board.interrupted(upstream, interruption);
    this.#enter('interrupted', {
      kind: 'interrupted',
      ...told,
      upstream,
      cause,
      phase,
      evidence: evidence.kind,
      ...(detail !== undefined && { detail }),
      ...(status !== undefined && { status }),
    });
  }

  planned({ plan, why, wait_ms }: ObservedPlan): void {
    this.#plan = plan;
    const isAskedAgain = plan === 'R1' || plan === 'R3' || plan === 'R4';
    this.#recovering = isAskedAgain;
    this.#enter(isAskedAgain ? 'waiting' : 'finishing', {
      kind: 'planned',
      plan,
      ...(why !== undefined && { why }),
      wait_ms: Math.round(wait_ms),
    });
  }

  recovered({ plan, mode, gap_ms }: Parameters<RunObservation['recovered']>[0]): void {
    this.#board.recovered(gap_ms);
    this.#recovering = false;
    this.#enter('answering', { kind: 'recovered', plan, mode, gap_ms: Math.round(gap_ms) });
  }

  ended({ outcome, finish }: ObservedEnd): void {
    this.#characters = this.characters;
    this.#tool_calls = this.tool_calls;
    this.#text = this.#shownText;
    this.#answer = undefined;
    this.#outcome = outcome;
    this.#recovering = false;
    const told = finish !== undefined && { finish: shownText(finish, FINISH_CHARACTERS_MAX) };
    this.#enter('ended', { kind: 'ended', outcome, ...told });
    this.#board.ended(this, outcome);
  }

  summary(): RunSummary {
    return {
      key: this.key,
      ...this.#facts,
      upstream: this.#upstream,
      attempt: this.#attempt,
      state: this.#state,
      state_at_ms: this.#state_at_ms,
      characters: this.characters,
      tool_calls: this.tool_calls,
      interruptions: this.#interruptions,
      ...(this.#cause !== undefined && { cause: this.#cause }),
      ...(this.#plan !== undefined && { plan: this.#plan }),
      ...(this.#outcome !== undefined && { outcome: this.#outcome, ended_at_ms: this.#state_at_ms }),
    };
  }

  detail(): RunDetail {
    return {
      version: STATUS_VERSION,
      now_ms: this.#time.wall(),
      ...this.summary(),
      timeline: [...this.#timeline],
      omitted: this.#omitted,
      ...(this.#content && { text: this.#shownText }),
    };
  }

  get #shownText(): string {
    if (!this.#content) return '';
    return this.#answer ? this.#answer.text.slice(-TEXT_CHARACTERS_MAX).toWellFormed() : this.#text;
  }

  #enter(state: RunState, entry: WithoutTime<TimelineEntry>): void {
    const at_ms = this.#time.wall();
    if (state !== this.#state) this.#state_at_ms = at_ms;
    this.#state = state;
    this.#add({ ...entry, at_ms });
  }

  #add(entry: TimelineEntry): void {
    this.#timeline.push(entry);
    if (this.#timeline.length > ENTRIES_MAX) {
      this.#timeline.splice(FIRST_KEPT, 1);
      this.#omitted++;
    }
    this.#board.changed(this, entry);
  }
}

type WithoutTime<Entry> = Entry extends unknown ? Omit<Entry, 'at_ms'> : never;

/** What there is to know of evidence besides its kind. Some of it is the provider's own choice of words. */
function evidenceDetail({ kind: _, ...details }: Evidence): string | undefined {
  const [detail] = Object.values(details);
  const isWord = typeof detail === 'string' || typeof detail === 'number';
  return isWord ? shownText(String(detail), DETAIL_CHARACTERS_MAX) : undefined;
}

/** Foreign text as it may be shown: on one line, and at most `characters_max` long. */
export function shownText(text: string, characters_max: number): string {
  const short = text.length > characters_max ? `${text.slice(0, characters_max - 1)}…` : text;
  return short.toWellFormed().replace(CONTROLS, '\ufffd');
}
