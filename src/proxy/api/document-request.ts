import type { Owner } from '../../checkpoint/store.ts';
import { ApiError } from '../../lib/errors.ts';
import { type Fields, type JsonBody, withFields } from '../../lib/json-body.ts';
import type { Target } from '../upstream/target.ts';
import type { Wire } from '../wires/common/wire.ts';
import type { ApiContext } from './api-context.ts';

/**
 * Turns a request without a stream into one with a stream, from which the document can be assembled. `undefined` if it
 * must be passed through: the route requires it, the answer could not be joined, or the model is known not to stream.
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
  // The provider validates any other value.
  const asksForNone = stream === undefined || stream === null || stream === false;
  if (!asksForNone || typeof model !== 'string' || !models.recoversDocuments(model)) return undefined;
  const target = models.target(model);
  const added = wire.document.streamFields(fields);
  if (!target || !added || !isDispensable(queryOf(url), target)) return undefined;
  const streamed = withFields(body, added);
  if (!isSpliceable(wire, streamed.fields) || streamRefusals.has(target, model, ownerOf())) return undefined;
  return streamed;
}

/**
 * Runs drop the query. The one from Anthropic's SDKs repeats their headers; other parameters may already be configured.
 */
const isDispensable = (query: string, { upstream }: Target): boolean =>
  query === 'beta=true' ||
  Array.from(new URLSearchParams(query).keys()).every((name) => Object.hasOwn(upstream.query ?? {}, name));

const queryOf = (url: string): string => url.split('?').slice(1).join('?');

/** The provider reports invalid requests. */
function isSpliceable(wire: Wire, fields: Fields): boolean {
  try {
    return wire.facts(wire.request(fields)).spliceable;
  } catch (error) {
    if (error instanceof ApiError) return false;
    throw error;
  }
}
