import type { Owner } from '../../checkpoint/store.ts';
import { ApiError } from '../../lib/errors.ts';
import { type Fields, type JsonBody, withFields } from '../../lib/json-body.ts';
import type { Target } from '../upstream/target.ts';
import type { Wire } from '../wires/common/wire.ts';
import type { ApiContext } from './api-context.ts';

/**
 * The request of a client that asks for no stream, as one for a stream, from which its document can be put together.
 * `undefined` where it is passed through as it came: the route says so, its answer could not be joined, or the model is
 * known not to stream.
 */
export function streamedRequest(
  wire: Wire,
  body: JsonBody,
  url: string,
  ownerOf: () => Owner,
  { models, streamRefusals }: Pick<ApiContext, 'models' | 'streamRefusals'>,
): JsonBody | undefined {
  const { fields } = body;
  const { model, stream } = fields;
  // What else may be there is for the provider to judge.
  const asksForNone = stream === undefined || stream === null || stream === false;
  if (!asksForNone || typeof model !== 'string' || !models.recoversDocuments(model)) return undefined;
  const target = models.target(model);
  const added = wire.document.streamFields(fields);
  if (!target || !added || !isDispensable(queryOf(url), target)) return undefined;
  const streamed = withFields(body, added);
  if (!isSpliceable(wire, streamed.fields) || streamRefusals.has(target, model, ownerOf())) return undefined;
  return streamed;
}

/** A run takes no query along. That of Anthropic's SDKs says nothing that their headers do not; a parameter may be set already. */
const isDispensable = (query: string, { upstream }: Target): boolean =>
  query === 'beta=true' ||
  Array.from(new URLSearchParams(query).keys()).every((name) => Object.hasOwn(upstream.query ?? {}, name));

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
