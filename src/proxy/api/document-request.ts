import type { Owner } from '../../checkpoint/store.ts';
import { ApiError } from '../../lib/errors.ts';
import type { Fields, JsonBody } from '../../lib/json-body.ts';
import type { Wire } from '../wires/common/wire.ts';
import type { ApiContext } from './api-context.ts';

/**
 * The request of a client that asks for no stream, as one for a stream, from which its document can be put together.
 * `undefined` where it is passed through as it came: the route says so, its answer could not be joined, or the model is
 * known not to stream.
 */
export function streamedRequest(
  wire: Wire,
  { text, fields }: JsonBody,
  url: string,
  ownerOf: () => Owner,
  { models, streamRefusals }: Pick<ApiContext, 'models' | 'streamRefusals'>,
): JsonBody | undefined {
  const { model, stream } = fields;
  // What else may be there is for the provider to judge.
  const asksForNone = stream === undefined || stream === null || stream === false;
  if (
    !asksForNone ||
    !QUERIES.has(queryOf(url)) ||
    typeof model !== 'string' ||
    !models.recoversDocuments(model)
  )
    return undefined;
  const target = models.target(model);
  const added = wire.document.streamFields(fields);
  if (!target || !added) return undefined;
  const streamed = { ...fields, ...added };
  if (!isSpliceable(wire, streamed) || streamRefusals.has(target, model, ownerOf())) return undefined;
  return { text: withFields(text, fields, added), fields: streamed };
}

/** A run takes no query along. That of Anthropic's SDKs says nothing that their headers do not. */
const QUERIES: ReadonlySet<string> = new Set(['', 'beta=true']);

const queryOf = (url: string): string => url.split('?').slice(1).join('?');

/** What is wrong with a request is for its provider to say. */
function isSpliceable(wire: Wire, fields: Fields): boolean {
  try {
    return wire.facts(wire.request(fields)).spliceable;
  } catch (error) {
    if (error instanceof ApiError) return false;
    throw error;
  }
}

/** Everything else stays as it came, to the letter: parsing rounds large numbers. */
function withFields(text: string, fields: Fields, added: Fields): string {
  if (Object.keys(added).some((name) => Object.hasOwn(fields, name)))
    return JSON.stringify({ ...fields, ...added });
  return text.replace('{', () => `${JSON.stringify(added).slice(0, -1)},`);
}
