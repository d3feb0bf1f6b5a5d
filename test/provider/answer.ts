import { accented } from './accent.ts';
import { utterance } from './continuation.ts';
import { type Envelope, usageOf } from './events.ts';
import { expectedAnswer } from './expected.ts';
import type { Fault } from './fault.ts';
import { limited } from './limits.ts';
import type { CachedTokens } from './prompt-cache.ts';
import type { CompletionRequest } from './request.ts';
import type { Plan } from './script.ts';
import { isPrefill, type Situation, situationOf } from './situation.ts';
import { isStreamFault, type Step, type StreamFault, streamSteps } from './steps.ts';
import { PROVIDER_WIRES, wireAt } from './wires/registry.ts';
import type { ProviderWire } from './wires/wire.ts';

const NO_PREFILL =
  'This model does not support assistant message prefill. The conversation must end with a user message.';
const BOTH_FLAGS = 'Cannot set both `continue_final_message` and `add_generation_prompt` to True.';

/** What distinguishes one request from another with the same body. */
export interface Occasion {
  /** 1 for the first request of a run; selects the fault. */
  readonly attempt: number;
  /** Unique per request; part of the completion id. */
  readonly serial: number;
  /** Seconds since the Unix epoch. */
  readonly created: number;
  /** `/v1/chat/completions` by default; DeepSeek accepts a prefill only under `/beta`. */
  readonly path?: string;
  /** Prompt tokens read from and written to the cache, if the request uses it. */
  readonly cached?: CachedTokens | undefined;
}

/** Everything the provider does in answer to one request. Pure: the same arguments give the same steps. */
export function answer(plan: Plan, request: CompletionRequest, occasion: Occasion): readonly Step[] {
  const fault = plan.faults?.[occasion.attempt - 1];
  if (fault && !isStreamFault(fault)) return insteadOfStream(fault);
  const situation = situationOf(request, plan);
  const refused = refusedContinuation(plan, request, situation, occasion);
  if (refused !== undefined) return refusal(refused, plan);
  const envelope = envelopeOf(plan, request, occasion);
  const wire = plan.accent ? accented(wireOf(occasion), plan.accent) : wireOf(occasion);
  if (!request.stream) {
    const whole = limited(utterance(plan, { kind: 'original' }), request);
    return plain(200, wire.whole(expectedAnswer(plan, request), envelope, whole));
  }
  const said = limited(utterance(plan, honoured(plan, request, situation, occasion)), request);
  const wanted = request.stream_options?.include_usage ? (plan.usage ?? 'final') : 'none';
  const counted = usageOf(request, said.deltas.slice(said.echoed), plan.characters_per_token);
  const usage = occasion.cached ? { ...counted, cached: occasion.cached } : counted;
  const stream = wire.events(said, envelope, usage, wanted);
  return streamSteps(stream, envelope, fault, wire);
}

function envelopeOf(
  plan: Plan,
  request: CompletionRequest,
  { serial, created, path = '' }: Occasion,
): Envelope {
  const id = `${plan.id ?? 'chatcmpl'}-${serial}`;
  const { background = false } = request;
  return {
    id,
    model: plan.model ?? request.model,
    created,
    wire: wireAt(path) ?? 'chat_completions',
    background,
  };
}

const wireOf = ({ path = '' }: Occasion): ProviderWire => PROVIDER_WIRES[wireAt(path) ?? 'chat_completions'];

/**
 * The request as the model sees it: a trailing assistant message that isn't a prefill is just another finished turn.
 */
function honoured(
  plan: Plan,
  request: CompletionRequest,
  situation: Situation,
  occasion: Occasion,
): Situation {
  const path = occasion.path ?? '/v1/chat/completions';
  const isContinued = !wireOf(occasion).hasTurns || isPrefill(request, plan.prefill ?? 'any', path);
  if (situation.kind !== 'prefill' || isContinued) return situation;
  return { kind: 'original' };
}

function refusedContinuation(
  plan: Plan,
  request: CompletionRequest,
  situation: Situation,
  occasion: Occasion,
): string | undefined {
  const isAsked = situation.kind === 'prefill' && wireOf(occasion).hasTurns;
  if (isAsked && plan.continuation === 'rejects_prefill') return NO_PREFILL;
  const both = request.continue_final_message === true && request.add_generation_prompt === true;
  return both ? BOTH_FLAGS : undefined;
}

function refusal(message: string, { accent }: Plan): Step[] {
  if (accent?.refusal) return plain(accent.refusal.status, accent.refusal.body);
  return plain(400, { type: 'error', error: { type: 'invalid_request_error', message } });
}

function insteadOfStream(fault: Exclude<Fault, StreamFault>): Step[] {
  switch (fault.kind) {
    case 'status':
      return plain(fault.status, fault.body ?? defaultError(fault.status), fault.headers);
    case 'json_200':
      return plain(200, {
        code: 'The service is currently unavailable',
        error: 'The model is at capacity. Please try again later.',
      });
    case 'html_200':
      return plain(200, '<!doctype html><title>Sign in</title>', {
        'content-type': 'text/html; charset=utf-8',
      });
  }
}

const defaultError = (status: number) => ({
  error: { message: `The scripted status is ${status}.`, type: 'server_error', param: null, code: null },
});

/** A whole response at once. A body that isn't a string is sent as JSON. */
export function plain(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Step[] {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return [
    { kind: 'head', status, headers: { 'content-type': 'application/json', ...headers } },
    { kind: 'send', bytes },
    { kind: 'end' },
  ];
}
