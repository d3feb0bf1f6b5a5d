import { answer, type Occasion } from '../answer.ts';
import type { CompletionRequest } from '../request.ts';
import type { Plan } from '../script.ts';
import { isStreamFault, type Step, streamSteps } from '../steps.ts';
import { responsesWire } from './responses-wire.ts';

/** An answer that the provider completes whether or not a client listens. */
export interface Background {
  readonly plan: Plan;
  readonly request: CompletionRequest;
  readonly occasion: Occasion;
}

/** A provider's answers that clients can return to, by response id. */
export class Backgrounds {
  readonly #kept = new Map<string, Background>();

  /** Keeps the answer if the request asks for that. */
  keep(background: Background): void {
    const { plan, request, occasion } = background;
    if (!request.background) return;
    this.#kept.set(`resp_${plan.id ?? 'chatcmpl'}-${occasion.serial}`, background);
  }

  /** The answer that a POST to this path cancels; it is no longer available afterwards. */
  cancelledAt(path: string): object | undefined {
    const [, id = ''] = /^\/v1\/responses\/([^/]+)\/cancel$/.exec(path) ?? [];
    return this.#kept.delete(decodeURIComponent(id))
      ? { id, object: 'response', status: 'cancelled' }
      : undefined;
  }

  /** The answer that a GET of this path asks for, if it exists. */
  at(path: string): Background | undefined {
    const [, id] = /^\/v1\/responses\/([^/]+)$/.exec(path) ?? [];
    return id === undefined ? undefined : this.#kept.get(decodeURIComponent(id));
  }
}

/** The answer from after an event on. `attempt` selects the fault. */
export function restOf(
  { plan, request, occasion }: Background,
  after: number,
  attempt: number,
): readonly Step[] {
  const uncut = answer({ ...plan, faults: [] }, request, occasion);
  const events = uncut
    .flatMap((step) => (step.kind === 'send' ? [step.bytes.toString()] : []))
    .slice(after + 1);
  const fault = plan.faults?.[attempt - 1];
  const envelope = { id: `${plan.id ?? 'chatcmpl'}-${occasion.serial}`, model: request.model, created: 0 };
  if (fault && !isStreamFault(fault)) return answer(plan, request, { ...occasion, attempt });
  return streamSteps({ events, finished_after: events.length }, envelope, fault, responsesWire);
}
