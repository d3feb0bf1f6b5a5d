import type { Limits } from '../../config/configuration.ts';
import { type ApiError, apiError } from '../../lib/errors.ts';
import { isObject, NESTING_MAX, nestsTooDeep } from '../../lib/json.ts';
import { type Fields, readJsonBody } from '../../lib/json-body.ts';
import { WIRES } from '../wires/registry.ts';
import type { RepeatedRequest } from './return.ts';

/** What a client brings that may be ahead of the checkpoint. */
interface ResumeBody {
  /** How many events of the run it has. */
  readonly cursor: number;
  /** Payloads of the last events it has, oldest first, the last one being event `cursor`. */
  readonly tail: readonly string[];
  /** The request of the run, which need not have been stored. */
  readonly repeated?: RepeatedRequest;
}

type ResumeLimits = Pick<Limits, 'run_bytes' | 'body_bytes'>;

/** Checks `{cursor, tail, request}`. The tail may have as many bytes as a run, and the request as many as any. */
export function resumeBody({ cursor, tail = [], request }: Fields, limits: ResumeLimits): ResumeBody {
  const { run_bytes, body_bytes } = limits;
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
    if (nestsTooDeep(payload))
      throw invalid(`tail[${index}]`, `the payload of an event: JSON of at most ${NESTING_MAX} levels`);
    bytes += Buffer.byteLength(payload);
  }
  if (bytes > run_bytes) throw invalid('tail', `at most ${run_bytes} bytes in all (limits.run_bytes)`);
  const repeated = request === undefined ? undefined : repeatedRequest(request, body_bytes);
  return { cursor: cursor as number, tail, ...(repeated && { repeated }) };
}

/** Throws what the request itself would be refused with, too. */
function repeatedRequest(request: unknown, body_bytes: number): RepeatedRequest {
  const { path, body }: Fields = isObject(request) ? request : {};
  const wire = Object.values(WIRES).find((each) => `/v1${each.path}` === path);
  if (!wire)
    throw invalid('request.path', 'the path of the request of the run, such as /v1/chat/completions');
  if (typeof body !== 'string')
    throw invalid('request.body', 'the body of the request of the run, as a string');
  const bytes = Buffer.from(body);
  if (bytes.length > body_bytes) {
    throw invalid('request.body', `at most ${body_bytes} bytes (limits.body_bytes)`);
  }
  const { text, fields } = readJsonBody(bytes);
  if (fields.stream !== true) throw invalid('request.body', 'the body of a request with `stream: true`');
  wire.request(fields);
  return { wire: wire.name, body: text };
}

const invalid = (param: string, expected: string): ApiError => apiError('invalid_field', { param, expected });
