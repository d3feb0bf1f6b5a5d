import { limitsFor, UNAIDED } from '../../../interrupts/clocks.ts';
import { PROBE, type PrefillManner, prefixOf, probedManner } from '../../../plans/seam/mode.ts';
import { tokenCount } from '../../../plans/tokens.ts';
import { upstreamUrl } from '../../upstream/address.ts';
import { Attempt, type AttemptClockLimits } from '../../upstream/attempt.ts';
import type { RunTarget } from '../../upstream/target.ts';
import { chatWire } from '../../wires/chunks/chat-wire.ts';
import type { Dialect } from '../../wires/common/dialect.ts';
import { refusesPrefill } from '../../wires/dialects/prefill-evidence.ts';
import type { RunContext } from '../context/run-context.ts';
import { SideAnswer } from '../context/side-answer.ts';

/** A client waits for it, in the middle of its answer. */
export const PROBE_MAX_MS = 3000;
/** Enough for the next word, or for the first ones of an answer begun anew. */
const TOKENS_MAX = 24;

/** Asks a target what it makes of the beginning of an answer, as the rest of one would be asked for. */
export class PrefillProbe {
  readonly #target: RunTarget;
  readonly #model: string;
  readonly #dialect: Dialect;
  readonly #context: RunContext;

  constructor(target: RunTarget, model: string, dialect: Dialect, context: RunContext) {
    this.#target = target;
    this.#model = model;
    this.#dialect = dialect;
    this.#context = context;
  }

  /** `undefined` where it cannot be found out. `first`: the first event of an answer of the target, if there was one. */
  async ask(first: object): Promise<PrefillManner | undefined> {
    const { transport, configuration, time, log } = this.#context;
    const { name: upstream, headers } = this.#target;
    const { event_bytes } = configuration.limits;
    const request = { url: this.#url, headers, body: JSON.stringify(this.#bodyWith(first)) };
    const limits = { clocks: this.#clocks, event_bytes };
    // Several runs may wait for it: one of them that ends must not end the probe.
    const never = new AbortController().signal;
    // Whatever is added to the client's requests has no place in this one.
    const attempt = new Attempt(transport.bare ?? transport, request, limits, time, never);
    const answer = new SideAnswer(attempt, TOKENS_MAX, 'recovery.probe', time);
    await answer.run();
    this.#account(answer);
    const manner = mannerIn(answer);
    log.info({ upstream, manner: manner ?? 'unknown' }, 'prefill probed');
    return manner;
  }

  #bodyWith(first: object): object {
    const request = {
      model: this.#model,
      stream: true as const,
      stream_options: { include_usage: true },
      max_tokens: TOKENS_MAX,
      messages: [{ role: 'user', content: PROBE.question }],
    };
    return chatWire.continuation({
      request,
      dialect: this.#dialect,
      first: { ...first },
      mode: 'prefill',
      prefix: prefixOf(PROBE.said, false),
      reasoning: '',
      sealed: [],
      cutTools: [],
      insists: false,
      tokens_left: TOKENS_MAX,
    }).body;
  }

  get #url(): string {
    const { base_url } = this.#target.upstream;
    return upstreamUrl(this.#dialect.prefillUrl?.(base_url) ?? base_url, chatWire.path);
  }

  get #clocks(): AttemptClockLimits {
    const { configuration } = this.#context;
    const clocks = limitsFor({ ...configuration.clocks, ...this.#target.upstream.clocks }, UNAIDED);
    return { ...clocks, attempt_ms: Math.min(clocks.attempt_ms, PROBE_MAX_MS) };
  }

  /** All of it is paid for, and none of it shown. */
  #account({ usage }: SideAnswer): void {
    const { tokens } = this.#context.metrics;
    tokens.inc({ kind: 'prompt' }, tokenCount(usage.prompt_tokens));
    tokens.inc({ kind: 'completion' }, tokenCount(usage.completion_tokens));
    tokens.inc({ kind: 'repaid' }, tokenCount(usage.completion_tokens));
  }
}

function mannerIn({ interruption, text }: SideAnswer): PrefillManner | undefined {
  if (!interruption) return probedManner(text);
  const { cause, message = '' } = interruption;
  return cause === 'invalid_request' && refusesPrefill(message) ? 'new_turn' : undefined;
}
