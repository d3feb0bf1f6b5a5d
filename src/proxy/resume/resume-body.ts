import { type ApiError, apiError } from '../../errors.ts';
import type { Fields } from '../json-body.ts';

/** What a client brings that may be ahead of the checkpoint. */
export interface ResumeBody {
  /** How many events of the run it has. */
  readonly cursor: number;
  /** Payloads of the last events it has, oldest first, the last one being event `cursor`. */
  readonly tail: readonly string[];
}

/** Checks `{cursor, tail}`. `run_bytes`: what the tail may have, as no run has more. */
export function resumeBody({ cursor, tail = [] }: Fields, run_bytes: number): ResumeBody {
  if (cursor === undefined) {
    throw apiError('missing_field', { param: 'cursor', expected: 'the number of events that you have' });
  }
  if (!Number.isSafeInteger(cursor) || (cursor as number) < 0) {
    throw invalid('cursor', 'the number of events that you have, 0 for none');
  }
  if (!Array.isArray(tail)) throw invalid('tail', 'a list of the payloads of the last events that you have');
  if (tail.length > (cursor as number)) throw invalid('tail', 'a list of `cursor` events at most');
  let bytes = 0;
  for (const [index, payload] of tail.entries()) {
    // Whatever has a line break was no `data:` line, and would not be one for the next reader.
    if (typeof payload !== 'string' || /[\r\n]/.test(payload)) {
      throw invalid(`tail[${index}]`, 'the payload of an event: a string without line breaks');
    }
    bytes += Buffer.byteLength(payload);
  }
  if (bytes > run_bytes) throw invalid('tail', `at most ${run_bytes} bytes in all (limits.run_bytes)`);
  return { cursor: cursor as number, tail };
}

const invalid = (param: string, expected: string): ApiError => apiError('invalid_field', { param, expected });
