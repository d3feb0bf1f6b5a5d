import { encodeFrame, numbersOf, type Place } from './frame.ts';
import { encodeNoteFrame, type LogState, noteTextOf } from './log-state.ts';
import { originOf } from './note-table.ts';
import type { RequestOf, Writing } from './protocol.ts';
import { refused } from './refusal.ts';
import type { Outcome, SegmentLog } from './segment-log.ts';

export interface NoteLogOptions {
  readonly log: SegmentLog;
  readonly state: LogState;
  /** Distinguishes this process's frames from those of others. */
  readonly replica: string;
}

/** The directory's notes on the writer thread. The order of the log decides which process claims or takes a note. */
export class NoteLog {
  readonly #log: SegmentLog;
  readonly #state: LogState;
  readonly #replica: string;
  #nonces = 0;

  constructor({ log, state, replica }: NoteLogOptions) {
    this.#log = log;
    this.#state = state;
    this.#replica = replica;
  }

  put(note: RequestOf<'put_note'>): Writing<undefined> {
    return {
      lines: [encodeNoteFrame({ ...note, mode: 'put', origin: this.#nonce(), at_ms: Date.now() })],
      answer: ([outcome]) => {
        written(outcome);
        return undefined;
      },
    };
  }

  /** Answers with the text that is kept: the new one, unless a note other than `in_place_of` exists. */
  claim(note: RequestOf<'claim_note'>): Writing<string> | { answer: string } {
    const { digest, text, expires_at_ms, in_place_of } = note;
    const current = this.#find(digest);
    if (current && current.text !== in_place_of) return { answer: current.text };
    const replaceable = current && originOf(current.place);
    const said = { digest, text, expires_at_ms, replaceable };
    return {
      lines: [encodeNoteFrame({ ...said, mode: 'claim', origin: this.#nonce(), at_ms: Date.now() })],
      answer: ([outcome]) => (written(outcome).code === 'taken' ? (this.#find(digest)?.text ?? '') : text),
    };
  }

  get({ digest }: RequestOf<'get_note'>): { answer: string | undefined } {
    return { answer: this.#find(digest)?.text };
  }

  /** Appends a copy of the note with a later expiry. */
  extend({ digest, expires_at_ms }: RequestOf<'extend_note'>): Writing<boolean> | { answer: true } {
    const now_ms = Date.now();
    const current = this.#find(digest);
    const lasts_until_ms = this.#state.notes.expiresAt(digest, now_ms) ?? expires_at_ms;
    if (!current || lasts_until_ms >= expires_at_ms) return { answer: true };
    const { place, text } = current;
    const copy = {
      digest,
      text,
      expires_at_ms,
      mode: 'copy',
      origin: originOf(place),
      at_ms: now_ms,
    } as const;
    return {
      lines: [encodeNoteFrame(copy)],
      answer: ([outcome]) => written(outcome).code !== 'stale',
    };
  }

  take({ digest }: RequestOf<'take_note'>): Writing<string | undefined> | { answer: undefined } {
    const current = this.#find(digest);
    if (!current) return { answer: undefined };
    return {
      lines: [encodeFrame('t', digest, Date.now(), this.#nonce())],
      answer: ([outcome]) => {
        const { place } = written(outcome);
        if (!place || originOf(place) === originOf(current.place)) return place && current.text;
        const line = this.#log.readCurrent(() => numbersOf(place));
        return line && noteTextOf(line);
      },
    };
  }

  /**
   * Undefined if the note doesn't exist. Reads again if another process has copied the note and removed its segment.
   */
  #find(digest: string): { readonly place: Place; readonly text: string } | undefined {
    let place: Place | undefined;
    const line = this.#log.readCurrent(() => {
      place = this.#state.notes.find(digest, Date.now());
      return place ? numbersOf(place) : [];
    });
    return place && line && { place, text: noteTextOf(line) };
  }

  #nonce(): string {
    return `${this.#replica}.${++this.#nonces}`;
  }
}

function written(outcome: Outcome | undefined): Outcome {
  if (outcome) return outcome;
  throw refused('ENOSPC', 'the note could not be written');
}
