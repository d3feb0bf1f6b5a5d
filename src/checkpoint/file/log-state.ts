import { withProof } from '../proven-text.ts';
import { seqOf } from '../record-codec.ts';
import type { Seal } from '../seal.ts';
import type { FinalStatus, Owner, RunId } from '../store.ts';
import { decodeFrame, encodeFrame, type Frame, type Place, subjectOfDamaged } from './frame.ts';
import { type NewNote, NoteTable } from './note-table.ts';
import { type Claim, type Copy, lastLineOf, type RunState, RunTable } from './run-table.ts';
import type { LogReader, Outcome } from './segment-log.ts';

/** Stands for no holder, and for no replaceable note. */
const NOTHING = '-';
const NOT_READABLE: Outcome = { code: 'missing' };

export interface LogStateOptions {
  /** Called for a damaged line whose subject can't be recognised. */
  onDamage(place: Place): void;
}

/** The runs and notes of the log, as far as it was read. */
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
        const seq = seqOf(bytes, body_start, body_end);
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
        return this.runs.copy(run, decodeCopy(frame, bytes, place));
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

  #note(frame: Frame, bytes: Buffer, place: Place): Outcome {
    const { mode, origin, at_ms, replaceable } = noteFieldsOf(frame, bytes);
    const note: NewNote = {
      mode: mode as NewNote['mode'],
      expires_at_ms: frame.number,
      origin,
      replaceable,
    };
    return this.notes.add(frame.subject, note, place, Number(at_ms));
  }
}

/** `seal`: the store's seal. */
export const encodeClaim = (run: RunId, claim: Claim, seal: Seal | undefined): string =>
  encodeFrame('c', run, claim.epoch, withProof(wordsOf(claim), seal?.for(run), placeOfClaim(claim.epoch)));

const wordsOf = ({ owner, holder, base, isRewound }: Claim): string =>
  `${owner} ${holder ?? NOTHING} ${base} ${isRewound ? 1 : 0}`;

/** Where a claim's proof is valid: in this epoch's claim alone. */
export const placeOfClaim = (epoch: number): string => `claim ${epoch}`;

export function decodeClaim({ number, body_start, body_end }: Frame, bytes: Buffer): Claim {
  const owner_end = bytes.indexOf(' ', body_start);
  const [holder, base, rewound] = bytes.toString('latin1', owner_end + 1, body_end).split(' ');
  return {
    epoch: number,
    // Decoded separately, because a substring would keep the whole line in memory for as long as the run is known.
    owner: bytes.toString('latin1', body_start, owner_end) as Owner,
    holder: holder === NOTHING ? undefined : holder,
    base: Number(base),
    isRewound: rewound === '1',
  };
}

/** A run's lines, preceded by the frame that marks them as a copy, for one write. */
export function encodeCopy(run: RunId, known: RunState, at_ms: number, lines: Buffer): Buffer {
  const frame = encodeFrame('m', run, at_ms, `${lastLineOf(known)} ${lines.length}`);
  return Buffer.concat([Buffer.from(frame), lines]);
}

function decodeCopy({ number, body_start, body_end }: Frame, bytes: Buffer, place: Place): Copy {
  const [origin = '', length] = bytes.toString('latin1', body_start, body_end).split(' ');
  const end = place.offset + place.bytes + 1 + Number(length);
  return { origin, at_ms: number, segment: place.segment, end };
}

export interface NoteFrame {
  readonly digest: string;
  readonly text: string;
  readonly expires_at_ms: number;
  readonly mode: NewNote['mode'];
  /**
   * For a copy, the place of the copied note; otherwise a nonce that distinguishes the frame from those of other
   * processes.
   */
  readonly origin: string;
  readonly at_ms: number;
  /** For a claim, the origin of the note that it may replace. */
  readonly replaceable?: string | undefined;
}

export function encodeNoteFrame(note: NoteFrame): string {
  const { digest, text, expires_at_ms, mode, origin, at_ms, replaceable = NOTHING } = note;
  const body = `${mode} ${origin} ${at_ms} ${replaceable} ${JSON.stringify(text)}`;
  return encodeFrame('n', digest, Math.ceil(expires_at_ms), body);
}

/** The note's text in this line; `''`, which no note has, if the line is damaged. */
export function noteTextOf(line: Buffer): string {
  const frame = decodeFrame(line, 0, line.length - 1);
  return frame?.kind === 'n' ? (JSON.parse(noteFieldsOf(frame, line).text) as string) : '';
}

function noteFieldsOf({ body_start, body_end }: Frame, bytes: Buffer) {
  const body = bytes.toString('utf8', body_start, body_end);
  const [mode = '', origin = '', at_ms = '', replaceable = ''] = body.split(' ', 4);
  const text = body.slice(mode.length + origin.length + at_ms.length + replaceable.length + 4);
  return { mode, origin, at_ms, replaceable, text };
}

function statusOf({ body_start, body_end }: Frame, bytes: Buffer): FinalStatus {
  const { status } = JSON.parse(bytes.toString('utf8', body_start, body_end)) as { status: FinalStatus };
  return status;
}
