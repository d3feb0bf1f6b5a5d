import { answer, type Occasion } from '../answer.ts';
import type { CompletionRequest } from '../request.ts';
import type { Plan } from '../script.ts';
import { isStreamFault, type Step, streamSteps } from '../steps.ts';
import { responsesWire } from './responses-wire.ts';

/** An answer that the provider gives to the end, whether or not a client listens. */
export interface Background {
  readonly plan: Plan;
  readonly request: CompletionRequest;
  readonly occasion: Occasion;
}

/** The answers of a provider that can be come back to, by the id of their response. */
export class Backgrounds {
  readonly #kept = new Map<string, Background>();

  /** If the request asks for that. */
  keep(background: Background): void {
    const { plan, request, occasion } = background;
    if (!request.background) return;
    this.#kept.set(`resp_${plan.id ?? 'chatcmpl'}-${occasion.serial}`, background);
  }

  /** What a POST to this path cancels is not there any more. */
  cancelledAt(path: string): object | undefined {
    const [, id = ''] = /^\/v1\/responses\/([^/]+)\/cancel$/.exec(path) ?? [];
    return this.#kept.delete(decodeURIComponent(id))
      ? { id, object: 'response', status: 'cancelled' }
      : undefined;
  }

  /** What a GET of this path asks for, if it is there. */
  at(path: string): Background | undefined {
    const [, id] = /^\/v1\/responses\/([^/]+)$/.exec(path) ?? [];
    return id === undefined ? undefined : this.#kept.get(decodeURIComponent(id));
  }
}

/** The answer from after an event on. `attempt` decides which fault strikes. */
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
