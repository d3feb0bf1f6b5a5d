import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { STORE_WAIT_MAX_MS } from '../../../checkpoint/best-effort-store.ts';
import type { NoteKey, Notes } from '../../../checkpoint/notes.ts';
import type { Owner, RunId, Store } from '../../../checkpoint/store.ts';
import type { Configuration } from '../../../config/configuration.ts';
import { inTime, type Time } from '../../../lib/time.ts';
import type { Notice } from '../../wires/common/notices.ts';
import type { Fate } from './notice-form.ts';

export interface NoticeContext {
  readonly store: Store;
  readonly configuration: Configuration;
  readonly time: Time;
  readonly log: Logger;
}

/** A note that was taken from the store, and the notice in it. */
export interface TakenNote {
  readonly run: RunId;
  readonly owner: Owner;
  readonly key: NoteKey;
  readonly value: string;
  readonly notice: Notice;
}

/** Notices that were taken from the store for one request. */
export class PendingNotices {
  readonly notices: readonly Notice[];
  readonly #taken: readonly TakenNote[];
  readonly #context: NoticeContext;

  constructor(taken: readonly TakenNote[], context: NoticeContext) {
    this.notices = taken.map(({ notice }) => notice);
    this.#taken = taken;
    this.#context = context;
  }

  /** To be called once the request is over. Notices that the model has not read are put back. Never rejects. */
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

  /** Leaves the note to another request, unless there is a newer one by now. */
  async #putBack(note: TakenNote): Promise<void> {
    const { store, configuration, log } = this.#context;
    const { owner, key, value } = note;
    try {
      // A reader that finds a claimed note would assume that it was delivered.
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
 * Whether the request that has taken the note must carry it. A note is left before its run is ended, and left again when
 * that fails: by then the model may have the first one.
 */
export async function claimNotice(notes: Notes, taken: TakenNote, ttl_ms: number): Promise<boolean> {
  const claim = randomUUID();
  return (await notes.claim(taken.owner, toldKey(taken), claim, ttl_ms)) === claim;
}

const toldKey = ({ run, key }: TakenNote): NoteKey => ({ kind: 'told', name: `${key.kind} ${run}` });
