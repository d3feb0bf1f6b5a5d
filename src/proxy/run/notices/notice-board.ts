import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { BestEffortStore, STORE_WAIT_MAX_MS } from '../../../checkpoint/best-effort-store.ts';
import type { NoteKey, Notes } from '../../../checkpoint/notes.ts';
import type { Owner, RunId, Store } from '../../../checkpoint/store.ts';
import type { Configuration } from '../../../config/configuration.ts';
import { apiError } from '../../../lib/errors.ts';
import { inTime, type Time } from '../../../lib/time.ts';
import type { AnsweredCall, Notice } from '../../wires/common/conversation.ts';
import { lostCallKey, lostCallNoteText, runWithLostCall } from './lost-calls.ts';
import { readThreadNote, threadKey, threadNoticeText } from './thread-notice.ts';

/** A request that may have to carry a notice. */
export interface NoticedRequest {
  readonly owner: Owner;
  readonly thread?: string | undefined;
  /** Set if the thread is derived: notices wait for a request to the same model. */
  readonly of_model?: string | undefined;
  /** The calls whose results it contains. */
  readonly answered: readonly AnsweredCall[];
}

/** False with `Holdfast-Notices: none` or `resume.notices: false`. Throws `invalid_field`. */
export function wantsNotices(header: string | string[] | undefined, { resume }: Configuration): boolean {
  if (header !== undefined && header !== '' && header !== 'none')
    throw apiError('invalid_field', { param: 'Holdfast-Notices', expected: 'none' });
  return header !== 'none' && resume.notices;
}

/** Finds pending notices. A failing or slow store delays few requests, and only briefly. */
export class NoticeBoard {
  readonly #context: NoticeContext;
  readonly #patience: BestEffortStore;

  constructor(context: NoticeContext) {
    this.#context = context;
    this.#patience = new BestEffortStore(context, 'models are told of nothing that was cut off');
  }

  /** The notices for this request, if any. Each notice is claimed by one request only. Never rejects. */
  async claim({ owner, thread, of_model, answered }: NoticedRequest): Promise<PendingNotices | undefined> {
    const { store } = this.#context;
    if ((thread === undefined && answered.length === 0) || this.#patience.isResting) return undefined;
    const lookups = [
      thread === undefined ? undefined : consumeThreadNote(store.notes, owner, thread, of_model),
      answered.length === 0 ? undefined : consumeLostCallNote(store.notes, owner, answered),
    ];
    const taken = await Promise.all(lookups.map((lookup) => lookup && this.#inTime(this.#toTell(lookup))));
    const notes = taken.filter((note) => note !== undefined);
    return notes.length === 0 ? undefined : new PendingNotices(notes, this.#context);
  }

  /** The note, unless another request already carried it. If that can't be determined, the note is put back. */
  async #toTell(lookup: Promise<TakenNote | undefined>): Promise<TakenNote | undefined> {
    const { store, configuration } = this.#context;
    const note = await lookup;
    if (!note) return undefined;
    try {
      const isOurs = await claimNotice(store.notes, note, configuration.checkpoint.ttl_s * 1000);
      return isOurs ? note : undefined;
    } catch (error) {
      void new PendingNotices([note], this.#context).settle('unseen');
      throw error;
    }
  }

  /** The note, if it arrives in time; a late one is put back. */
  #inTime(lookup: Promise<TakenNote | undefined>): Promise<TakenNote | undefined> {
    return this.#patience.answerOf(lookup, (late) => {
      if (late) void new PendingNotices([late], this.#context).settle('unseen');
    });
  }
}

async function consumeThreadNote(
  notes: Notes,
  owner: Owner,
  thread: string,
  of_model: string | undefined,
): Promise<TakenNote | undefined> {
  const key = threadKey(thread);
  if (of_model !== undefined) {
    const left = await notes.get(owner, key);
    if (left === undefined || readThreadNote(left).model !== of_model) return undefined;
  }
  const value = await notes.consume(owner, key);
  if (value === undefined) return undefined;
  const note = readThreadNote(value);
  return {
    run: note.run,
    owner,
    key,
    value,
    notice: { place: 'instructions', text: threadNoticeText(note) },
  };
}

async function consumeLostCallNote(
  notes: Notes,
  owner: Owner,
  answered: readonly AnsweredCall[],
): Promise<TakenNote | undefined> {
  const run = await runWithLostCall(notes, owner, answered);
  if (run === undefined) return undefined;
  const key = lostCallKey(run);
  // The results of one turn may arrive in several requests, and only one of them gets the notice.
  const value = await notes.consume(owner, key);
  if (value === undefined) return undefined;
  const text = lostCallNoteText(value);
  return { run, owner, key, value, notice: { place: 'tool_results', text } };
}

interface NoticeContext {
  readonly store: Store;
  readonly configuration: Configuration;
  readonly time: Time;
  readonly log: Logger;
}

/** A note taken from the store, with its notice. */
interface TakenNote {
  readonly run: RunId;
  readonly owner: Owner;
  readonly key: NoteKey;
  readonly value: string;
  readonly notice: Notice;
}

/** The result for a request's notices: the model received them, the provider refused them, or neither. */
export type Fate = 'told' | 'refused' | 'unseen';

/** Notices taken from the store for one request. */
export class PendingNotices {
  readonly notices: readonly Notice[];
  readonly #taken: readonly TakenNote[];
  readonly #context: NoticeContext;

  constructor(taken: readonly TakenNote[], context: NoticeContext) {
    this.notices = taken.map(({ notice }) => notice);
    this.#taken = taken;
    this.#context = context;
  }

  /** Call this once the request is over. Puts back notices that the model did not receive. Never rejects. */
  async settle(fate: Fate): Promise<void> {
    const { log, time } = this.#context;
    for (const { run, key } of this.#taken) {
      if (fate === 'told') log.info({ run, kind: key.kind }, 'notice told');
      else if (fate === 'refused')
        log.warn({ run, kind: key.kind }, 'notice dropped: the provider refuses it');
    }
    if (fate !== 'unseen') return;
    await inTime(Promise.all(this.#taken.map((note) => this.#putBack(note))), time, STORE_WAIT_MAX_MS);
  }

  /** Leaves the note to another request, unless a newer one exists. */
  async #putBack(note: TakenNote): Promise<void> {
    const { store, configuration, log } = this.#context;
    const { owner, key, value } = note;
    try {
      // Otherwise the next reader would assume that the notice was delivered.
      await store.notes.consume(owner, toldKey(note));
      await store.notes.claim(owner, key, value, configuration.checkpoint.ttl_s * 1000);
    } catch (error) {
      log.warn(
        { run: note.run, kind: note.key.kind, err: error },
        'notice lost: the store would not take it back',
      );
    }
  }
}

/**
 * Whether the request that took the note must carry the notice. A note is written before its run ends, and again if
 * ending it fails; by then the model may have received the first one.
 */
async function claimNotice(notes: Notes, taken: TakenNote, ttl_ms: number): Promise<boolean> {
  const claim = randomUUID();
  return (await notes.claim(taken.owner, toldKey(taken), claim, ttl_ms)) === claim;
}

const toldKey = ({ run, key }: TakenNote): NoteKey => ({ kind: 'told', name: `${key.kind} ${run}` });
