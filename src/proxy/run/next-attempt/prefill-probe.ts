import { PROBE, type PrefillManner, prefixOf, probedManner } from '../../../plans/seam/mode.ts';
import type { RunTarget } from '../../upstream/target.ts';
import { chatWire } from '../../wires/chunks/chat-wire.ts';
import { type Dialect, questionRequest } from '../../wires/common/dialect.ts';
import type { ChatRequest } from '../../wires/common/request.ts';
import { refusesPrefill } from '../../wires/dialects/prefill-evidence.ts';
import { type ProbeAnswer, probe } from '../context/probe.ts';
import type { RunContext } from '../context/run-context.ts';

/** A client waits for it, in the middle of its answer. */
export const PROBE_MAX_MS = 3000;
/** Enough for the next word, or for the first ones of an answer begun anew. */
const TOKENS_MAX = 24;

/**
 * Asks a target what it makes of the beginning of an answer, as the rest of one would be asked for. `undefined` where
 * that cannot be found out. `first`: the first event of an answer of the target, if there was one.
 */
export async function probePrefill(
  { name, upstream, headers }: RunTarget,
  model: string,
  dialect: Dialect,
  first: object,
  context: RunContext,
): Promise<PrefillManner | undefined> {
  const request = questionRequest(model, PROBE.question, TOKENS_MAX, dialect);
  // Without a signal: several runs may wait for it, and one of them that ends must not end the probe.
  const answer = await probe(
    {
      upstream,
      headers,
      body: prefillBody(request, dialect, first, TOKENS_MAX),
      base_url: dialect.prefillUrl?.(upstream.base_url),
      attempt_max_ms: PROBE_MAX_MS,
      limit: { tokens: TOKENS_MAX, key: 'recovery.probe' },
    },
    context,
  );
  answer.account(context.metrics);
  const manner = mannerIn(answer);
  context.log.info({ upstream: name, manner: manner ?? 'unknown' }, 'prefill probed');
  return manner;
}

/** `request`, as it asks for what follows the beginning of the answer to {@link PROBE}. */
export const prefillBody = (
  request: ChatRequest,
  dialect: Dialect,
  first: object,
  tokens_left: number,
): object =>
  chatWire.continuation({
    request,
    dialect,
    first: { ...first },
    mode: 'prefill',
    prefix: prefixOf(PROBE.said, false),
    reasoning: '',
    sealed: [],
    cutTools: [],
    insists: false,
    tokens_left,
  }).body;

function mannerIn({ interruption, text }: ProbeAnswer): PrefillManner | undefined {
  if (!interruption) return probedManner(text);
  const { cause, message = '' } = interruption;
  return cause === 'invalid_request' && refusesPrefill(message) ? 'new_turn' : undefined;
}
