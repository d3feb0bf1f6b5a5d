import type { Transport, TransportRequest, TransportResponse } from '../../upstream/transport.ts';
import type { Relay } from '../context/run-context.ts';
import type { NoticeBoard } from './notice-board.ts';
import { NoticeForm } from './notice-form.ts';

/** Relays a new run, with pending notices for its model. `isDerived`: its client has not named the thread itself. */
export const noticedRelay =
  (relay: Relay, board: NoticeBoard, isDerived = false): Relay =>
  async (run, client, context) => {
    const { owner, thread, request, target, targets = [target] } = run;
    const { notices } = run.wire;
    const pending =
      notices &&
      (await board.claim({
        owner,
        thread,
        of_model: isDerived ? request.model : undefined,
        answered: notices.answeredCalls(request),
      }));
    if (!pending) return relay(run, client, context);
    const dialects = targets.map((each) => context.capabilities.dialect(each, request.model));
    // The strictest target that may be asked decides: every target accepts what it accepts.
    const dialect = dialects.find((each) => each?.answersToolResults) ?? dialects[0];
    const form = new NoticeForm(pending.notices, notices, dialect);
    const transport = new NoticedTransport(context.transport, form);
    try {
      return await relay(run, client, { ...context, transport });
    } finally {
      await pending.settle(form.fate);
    }
  };

/** Puts notices into the requests of one run on their way out: its journal keeps what the client sent. */
export class NoticedTransport implements Transport {
  readonly #transport: Transport;
  readonly #form: NoticeForm;

  constructor(transport: Transport, form: NoticeForm) {
    this.#transport = transport;
    this.#form = form;
  }

  get bare(): Transport {
    return this.#transport;
  }

  async open(request: TransportRequest): Promise<TransportResponse> {
    const { body } = request;
    // What is come back to was asked for with its notices.
    if (typeof body !== 'string') return this.#transport.open(request);
    for (;;) {
      const attempt = new AbortController();
      const response = await this.#transport.open({
        ...request,
        body: this.#form.bodyOf(body),
        signal: AbortSignal.any([request.signal, attempt.signal]),
      });
      if (!this.#form.refused(response.status)) return response;
      attempt.abort();
    }
  }

  /** The connections are not its own. */
  async close(): Promise<void> {}
}
