import { createHmac } from 'node:crypto';
import type { WireName } from '../../checkpoint/journal.ts';
import { canonicalJson } from '../../plans/canonical-json.ts';
import type { EventsMode } from '../wires/common/wire.ts';

/**
 * Fields that say nothing about the answer that is asked for. Claude Code repeats a request without `stream` when its
 * stream was cut; `client_metadata` is Codex's word about itself; vLLM takes a `request_id`, and SGLang a `rid`, that
 * is another one each time.
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
 * What makes two requests the same, however they are written. Keyed, so that what a store holds cannot be tested
 * against guessed prompts.
 */
export const requestDigest = (secret: string, { wire, events, body }: DigestedRequest): string =>
  createHmac('sha256', secret)
    .update(`${wire} ${events}\n`)
    .update(canonicalJson(body, VOLATILE_FIELDS))
    .digest('base64url');
