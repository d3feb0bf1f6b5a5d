import { hash } from 'node:crypto';
import { seqOf } from '../record-codec.ts';
import type { FinalStatus, Owner, RunId } from '../store.ts';
import { decodeFrame, encodeFrame, type Frame, type Place, subjectOfDamaged } from './frame.ts';
import { type NewNote, NoteTable } from './note-table.ts';
import { type Claim, RunTable } from './run-table.ts';
import type { LogReader, Outcome } from './segment-log.ts';

const NO_HOLDER = '-';
const NOT_READABLE: Outcome = { code: 'missing' };

export interface LogStateOptions {
  /** The lines at these places. */
  read(places: readonly number[]): Buffer;
  /** A line of which not even the subject can be told was damaged. */
  onDamage(place: Place): void;
}

/** What the log says of runs and notes, so far as it was read. */
export class LogState implements LogReader {
  readonly runs = new RunTable();
  readonly notes = new NoteTable();
  readonly #options: LogStateOptions;
  #at_ms = 0;

  constructor(options: LogStateOptions) {
    this.#options = options;
  }

  frame(frame: Frame, bytes: Buffer, place: Place, at_ms: number): Outcome {
    this.#at_ms = at_ms;
    const { kind, subject, number, body_start, body_end } = frame;
    const run = subject as RunId;
    switch (kind) {
      case 'r': {
        const seq = seqOf(bytes.subarray(body_start, body_end));
        return seq === undefined ? NOT_READABLE : this.runs.record(run, number, seq, place, at_ms);
      }
      case 'c':
        return this.runs.claim(run, decodeClaim(frame, bytes), place, at_ms);
      case 'z':
        return this.runs.end(run, number, statusOf(frame, bytes), place, at_ms);
      case 'i':
        return this.runs.enter(run, bytes.toString('latin1', body_start, body_end), place, at_ms);
      case 'f':
        return this.runs.forgetEntry(run);
      case 'p':
        return this.runs.purge(run, at_ms);
      case 'm':
        return this.runs.copy(run, number);
      case 'n':
        return this.#note(frame, bytes, place);
      case 't':
        return this.notes.take(subject, number);
      default:
        return NOT_READABLE;
    }
  }

  damaged(bytes: Buffer, start: number, end: number, place: Place): void {
    const run = subjectOfDamaged(bytes, start, end, this.runs);
    if (run !== undefined) {
      this.runs.damage(run as RunId, place, this.#at_ms);
      return;
    }
    const digest = subjectOfDamaged(bytes, start, end, this.notes);
    if (digest !== undefined) this.notes.damage(digest, place);
    else this.#options.onDamage(place);
  }

  /** The text of a note; `''`, which no note has, when it is damaged. */
  noteAt(place: Place): string {
    const bytes = this.#options.read([place.segment, place.offset, place.bytes]);
    const frame = decodeFrame(bytes, 0, bytes.length - 1);
    if (frame?.kind !== 'n') return '';
    return JSON.parse(noteFieldsOf(frame, bytes).text) as string;
  }

  #note(frame: Frame, bytes: Buffer, place: Place): Outcome {
    const { mode, origin, at_ms, replaceable } = noteFieldsOf(frame, bytes);
    const note: NewNote = {
      mode: mode as NewNote['mode'],
      expires_at_ms: frame.number,
      origin,
      mayReplace: (current) => replaceable !== '-' && digestOfText(this.noteAt(current)) === replaceable,
    };
    return this.notes.add(frame.subject, note, place, Number(at_ms));
  }
}

export const encodeClaim = (run: RunId, { epoch, owner, holder, base, isRewound }: Claim): string =>
  encodeFrame('c', run, epoch, `${owner} ${holder ?? NO_HOLDER} ${base} ${isRewound ? 1 : 0}`);

export function decodeClaim({ number, body_start, body_end }: Frame, bytes: Buffer): Claim {
  const [owner, holder, base, rewound] = bytes.toString('latin1', body_start, body_end).split(' ');
  return {
    epoch: number,
    owner: owner as Owner,
    holder: holder === NO_HOLDER ? undefined : holder,
    base: Number(base),
    isRewound: rewound === '1',
  };
}

export interface NoteFrame {
  readonly digest: string;
  readonly text: string;
  readonly expires_at_ms: number;
  readonly mode: NewNote['mode'];
  /** Of a copy, where the copied note lies; of others, what tells the frame from that of another process. */
  readonly origin: string;
  readonly at_ms: number;
  /** Of a claim: the text of a note that may be replaced. */
  readonly in_place_of?: string | undefined;
}

export function encodeNoteFrame(note: NoteFrame): string {
  const { digest, text, expires_at_ms, mode, origin, at_ms, in_place_of } = note;
  const replaceable = in_place_of === undefined ? '-' : digestOfText(in_place_of);
  const body = `${mode} ${origin} ${at_ms} ${replaceable} ${JSON.stringify(text)}`;
  return encodeFrame('n', digest, Math.ceil(expires_at_ms), body);
}

function noteFieldsOf({ body_start, body_end }: Frame, bytes: Buffer) {
  const body = bytes.toString('utf8', body_start, body_end);
  const [mode = '', origin = '', at_ms = '', replaceable = ''] = body.split(' ', 4);
  const text = body.slice(mode.length + origin.length + at_ms.length + replaceable.length + 4);
  return { mode, origin, at_ms, replaceable, text };
}

const digestOfText = (text: string): string => hash('sha256', text, 'hex').slice(0, 32);

/** What a run was sealed with. */
function statusOf({ body_start, body_end }: Frame, bytes: Buffer): FinalStatus {
  const { status } = JSON.parse(bytes.toString('utf8', body_start, body_end)) as { status: FinalStatus };
  return status;
}
