import type { WireName } from '../../checkpoint/journal.ts';
import { KeyedHash } from '../../lib/keyed-hash.ts';
import { canonicalJson } from '../../plans/canonical-json.ts';
import type { EventsMode } from '../wires/common/wire.ts';

/**
 * Fields that don't affect the answer. Claude Code repeats a request without `stream` after a cut; Codex describes
 * itself in `client_metadata`; vLLM's `request_id` and SGLang's `rid` are different each time.
 */
export const VOLATILE_FIELDS: ReadonlySet<string> = new Set([
  'stream',
  'stream_options',
  'client_metadata',
  'request_id',
  'rid',
]);

export interface DigestedRequest {
  readonly wire: WireName;
  readonly events: EventsMode;
  /** JSON. */
  readonly body: string;
}

/**
 * Identifies a request regardless of its formatting. Keyed, so that stored digests can't be tested against guessed
 * prompts.
 */
export const requestDigest = (secret: string, { wire, events, body }: DigestedRequest): string =>
  KeyedHash.of(secret).digest(`${wire} ${events}\n${canonicalJson(body, VOLATILE_FIELDS)}`);
