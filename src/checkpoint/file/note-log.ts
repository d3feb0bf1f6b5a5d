import { encodeFrame } from './frame.ts';
import { encodeNoteFrame, type LogState } from './log-state.ts';
import type { RequestOf, Writing } from './protocol.ts';
import { refused } from './refusal.ts';
import type { Outcome } from './segment-log.ts';

/** The notes of a directory, as the writing thread keeps them. The order of the log decides who claims or takes one. */
export class NoteLog {
  readonly #state: LogState;
  readonly #replica: string;
  #nonces = 0;

  /** `replica` tells the frames of processes apart. */
  constructor({ state, replica }: { readonly state: LogState; readonly replica: string }) {
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

  /** Answers with the text that is kept: this one, unless there is another already than `in_place_of`. */
  claim(note: RequestOf<'claim_note'>): Writing<string> | { answer: string } {
    const current = this.get(note).answer;
    if (current !== undefined && current !== note.in_place_of) return { answer: current };
    return {
      lines: [encodeNoteFrame({ ...note, mode: 'claim', origin: this.#nonce(), at_ms: Date.now() })],
      answer: ([outcome]) => {
        const { place } = written(outcome);
        return place ? this.#state.noteAt(place) : note.text;
      },
    };
  }

  get({ digest }: RequestOf<'get_note'>): { answer: string | undefined } {
    const place = this.#state.notes.find(digest, Date.now());
    return { answer: place && this.#state.noteAt(place) };
  }

  take({ digest }: RequestOf<'take_note'>): Writing<string | undefined> | { answer: undefined } {
    const now_ms = Date.now();
    if (!this.#state.notes.find(digest, now_ms)) return { answer: undefined };
    return {
      lines: [encodeFrame('t', digest, now_ms, this.#nonce())],
      answer: ([outcome]) => {
        const { place } = written(outcome);
        return place && this.#state.noteAt(place);
      },
    };
  }

  #nonce(): string {
    return `${this.#replica}.${++this.#nonces}`;
  }
}

function written(outcome: Outcome | undefined): Outcome {
  if (outcome) return outcome;
  throw refused('ENOSPC', 'the note could not be written');
}
