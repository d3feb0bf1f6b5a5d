import type { Time } from '../lib/time.ts';
import { tokenCount } from '../plans/tokens.ts';
import type {
  ObservedAttempt,
  ObservedAttemptEnd,
  ObservedEnd,
  ObservedPlan,
  ObservedRun,
  RunObservation,
} from '../proxy/run/context/run-observer.ts';
import type { BoardTask } from './board-task.ts';
import { evidenceDetail } from './evidence-detail.ts';
import { shownText } from './shown-text.ts';
import {
  type RunDetail,
  type RunState,
  type RunStay,
  type RunSummary,
  STATUS_VERSION,
  type TimelineEntry,
} from './snapshot.ts';
import type { TargetAttempt } from './target-board.ts';

const MODEL_CHARACTERS_MAX = 80;
const FINISH_CHARACTERS_MAX = 40;
/** Length of the shown end of the answer, if content is shown. */
const TEXT_CHARACTERS_MAX = 4000;
/** Most runs have few entries. One with many attempts shows its first and its latest. */
const ENTRIES_MAX = 60;
const FIRST_KEPT = 12;
/** Maximum number of states; of a longer course, the latest are kept. */
const COURSE_MAX = 24;
const TRACE_ID = /^[0-9a-f]{2}-([0-9a-f]{32})-/;

/** What a run reports to its board. */
export interface BoardEvents {
  /** Anything except the answer's length has changed. */
  changed(run: BoardRun, entry: TimelineEntry): void;
  /** An attempt begins. `model`: the requested one. */
  attempted(upstream: string, model: string): TargetAttempt;
  interrupted(upstream: string, interruption: NonNullable<ObservedAttemptEnd['interruption']>): void;
  recovered(gap_ms: number): void;
  ended(run: BoardRun, outcome: ObservedEnd['outcome']): void;
}

interface WatchedRunOptions {
  readonly key: number;
  readonly time: Time;
  /** Whether text may be kept and shown. */
  readonly content: boolean;
  /** The task of which the run is a step. */
  readonly task?: BoardTask | undefined;
}

/** A run on the status page, from its start on this replica until it is forgotten. */
export class BoardRun implements RunObservation {
  readonly #time: Time;
  readonly #content: boolean;
  readonly #board: BoardEvents;
  readonly task: BoardTask | undefined;
  /** The run's events in order. */
  readonly #timeline: TimelineEntry[] = [];
  #omitted = 0;
  #trace_id: string | undefined;
  /** This replica's latest attempt. */
  #attempt: TargetAttempt | undefined;
  /** Released once the run has ended, so that the answer can be freed. */
  #answer: ObservedRun['answer'] | undefined;
  /** Contains the answer's length only after the run has ended. */
  #summary: RunSummary;
  #text = '';
  #recovering: boolean = false;

  constructor(observed: ObservedRun, { key, time, content, task }: WatchedRunOptions, board: BoardEvents) {
    const { run, wire, model, upstream, created_at_ms, streamed, resumable, taken_over, step, answer } =
      observed;
    this.#trace_id = TRACE_ID.exec(observed.traceparent ?? '')?.[1];
    this.#time = time;
    this.#content = content;
    this.#board = board;
    this.task = task;
    this.#answer = answer;
    this.#summary = {
      key,
      run,
      wire,
      model: shownText(model, MODEL_CHARACTERS_MAX),
      created_at_ms,
      streamed,
      resumable,
      ...(task && step && { task: task.id, step: step.number }),
      taken_over: taken_over !== undefined,
      upstream,
      attempt: 0,
      state: 'asking',
      state_at_ms: time.wall(),
      course: [['asking', time.wall()]],
      characters: 0,
      tool_calls: 0,
      interruptions: 0,
      recoveries: 0,
    };
    if (taken_over) this.#add({ kind: 'taken_over', at_ms: this.#summary.state_at_ms, ...taken_over });
  }

  get key(): number {
    return this.#summary.key;
  }

  get run(): RunSummary['run'] {
    return this.#summary.run;
  }

  get outcome(): RunSummary['outcome'] {
    return this.#summary.outcome;
  }

  get ended_at_ms(): number | undefined {
    const { outcome, state_at_ms } = this.#summary;
    return outcome === undefined ? undefined : state_at_ms;
  }

  get isRecovering(): boolean {
    return this.#recovering;
  }

  get characters(): number {
    return (this.#answer ?? this.#summary).characters;
  }

  get tool_calls(): number {
    return (this.#answer ?? this.#summary).tool_calls;
  }

  attempt({ attempt, upstream, mode, asked_model, compressed }: ObservedAttempt): undefined {
    this.#know({ attempt, upstream });
    this.#attempt = this.#board.attempted(upstream, asked_model);
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
    this.#attempt?.answered();
    this.#enter('answering', { kind: 'answering', attempt: this.#summary.attempt });
  }

  attemptEnded({ added, seam, interruption, usage }: ObservedAttemptEnd): void {
    this.task?.paid(tokenCount(usage?.prompt_tokens) + tokenCount(usage?.completion_tokens));
    const { attempt, upstream, interruptions } = this.#summary;
    const told = { attempt, added, ...(seam !== undefined && { seam }) };
    if (!interruption) {
      this.#enter('finishing', { kind: 'whole', ...told });
      return;
    }
    const { cause, phase, evidence, status } = interruption;
    const detail = evidenceDetail(evidence);
    this.#recovering = true;
    const { plan: _, ...known } = this.#summary;
    this.#summary = { ...known, interruptions: interruptions + 1, cause };
    this.#board.interrupted(upstream, interruption);
    this.#attempt?.failed(interruption);
    this.#attempt = undefined;
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
    this.#know({ plan });
    const isAskedAgain = plan === 'R1' || plan === 'R3' || plan === 'R4';
    this.#recovering = isAskedAgain;
    if (plan === 'R2' || plan === 'finish') this.task?.recovered();
    this.#enter(isAskedAgain ? 'waiting' : 'finishing', {
      kind: 'planned',
      plan,
      ...(why !== undefined && { why }),
      wait_ms: Math.round(wait_ms),
    });
  }

  recovered({ plan, mode, gap_ms }: Parameters<RunObservation['recovered']>[0]): void {
    this.#board.recovered(gap_ms);
    this.task?.recovered();
    this.#know({ recoveries: this.#summary.recoveries + 1 });
    this.#recovering = false;
    this.#enter('answering', { kind: 'recovered', plan, mode, gap_ms: Math.round(gap_ms) });
  }

  ended({ outcome, finish }: ObservedEnd): void {
    this.#know({ characters: this.characters, tool_calls: this.tool_calls, outcome });
    this.#text = this.#shownText;
    this.#answer = undefined;
    this.#recovering = false;
    const told = finish !== undefined && { finish: shownText(finish, FINISH_CHARACTERS_MAX) };
    this.#enter('ended', { kind: 'ended', outcome, ...told });
    this.#board.ended(this, outcome);
  }

  /** Takes the trace id from another observer. */
  identified({ trace_id }: Readonly<Record<string, string>>): void {
    this.#trace_id = trace_id ?? this.#trace_id;
  }

  summary(): RunSummary {
    const { ended_at_ms } = this;
    return {
      ...this.#summary,
      characters: this.characters,
      tool_calls: this.tool_calls,
      ...(ended_at_ms !== undefined && { ended_at_ms }),
    };
  }

  stay(): RunStay {
    return { ...this.summary(), timeline: [...this.#timeline], omitted: this.#omitted };
  }

  detail(): RunDetail {
    return {
      version: STATUS_VERSION,
      now_ms: this.#time.wall(),
      ...this.stay(),
      ...(this.#trace_id !== undefined && { trace_id: this.#trace_id }),
      ...(this.#content && { text: this.#shownText }),
    };
  }

  /** Drops the text, which is no longer shown. */
  forgetText(): void {
    this.#text = '';
  }

  get #shownText(): string {
    if (!this.#content) return '';
    return this.#answer ? this.#answer.text.slice(-TEXT_CHARACTERS_MAX).toWellFormed() : this.#text;
  }

  #know(changes: Partial<RunSummary>): void {
    this.#summary = { ...this.#summary, ...changes };
  }

  #enter(state: RunState, entry: WithoutTime<TimelineEntry>): void {
    const at_ms = this.#time.wall();
    if (state !== this.#summary.state) {
      const course = [...this.#summary.course, [state, at_ms] as const].slice(-COURSE_MAX);
      this.#know({ state, state_at_ms: at_ms, course });
    }
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
