import { parsedExactly } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../upstream/transport.ts';
import { FORMS, type Form, type Notice, type WireNotices } from '../../wires/common/conversation.ts';
import type { Dialect } from '../../wires/common/dialect.ts';
import type { Relay } from '../context/run-context.ts';
import type { Fate, NoticeBoard } from './notice-board.ts';

/** Relays a new run with pending notices for its model. `isDerived`: the client did not name the thread itself. */
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
    // The strictest dialect decides, because the other targets accept its form too.
    const dialect = dialects.find((each) => each?.answersToolResults) ?? dialects[0];
    const form = new NoticeForm(pending.notices, notices, dialect, run.body);
    const transport = new NoticedTransport(context.transport, form);
    try {
      return await relay(run, client, { ...context, transport });
    } finally {
      await pending.settle(form.fate);
    }
  };

/** Adds notices to a run's outgoing requests, so that its journal keeps the client's original. */
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
    // A request without a body resumes an answer whose request already carried the notices.
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

  /** The connections belong to the wrapped transport. */
  async close(): Promise<void> {}
}

/**
 * Statuses for a message where the server's chat template allows none; some servers report that as an internal error.
 */
const REFUSALS: ReadonlySet<number> = new Set([400, 422, 500]);

/**
 * The form of one request's notices. Notices must never cost the client its answer: a request refused with them is
 * repeated with another form, and then without them.
 */
export class NoticeForm {
  readonly #notices: readonly Notice[];
  readonly #wire: WireNotices;
  readonly #asked: string | undefined;
  readonly #first: Form;
  #form: Form;
  #fate: Fate = 'unseen';
  /** The request was refused without notices, too. */
  #blameless = false;

  /** `dialect`: the provider's, if known. `asked`: the client's original body, if requests extend it. */
  constructor(notices: readonly Notice[], wire: WireNotices, dialect: Dialect | undefined, asked?: string) {
    this.#notices = notices;
    this.#wire = wire;
    this.#asked = asked;
    const joins = dialect?.answersToolResults && notices.some(({ place }) => place === 'tool_results');
    this.#first = joins ? 'joined' : 'added';
    this.#form = this.#first;
  }

  get fate(): Fate {
    return this.#fate;
  }

  /** The JSON body with the notices added. */
  bodyOf(body: string): string {
    const form = this.#form;
    if (form === 'left_out') return body;
    let request = parsedExactly(body) as Fields;
    const isAsked = this.#asked === undefined || this.#asked === body;
    const asked = isAsked ? request : (parsedExactly(this.#asked) as Fields);
    for (const notice of this.#notices) request = this.#wire.withNotice(request, notice, form, asked);
    return JSON.stringify(request);
  }

  /** Handles the status of a response. True if the request must be repeated with a new {@link bodyOf}. */
  refused(status: number): boolean {
    if (status < 300) this.#fate = this.#form === 'left_out' ? 'refused' : 'told';
    if (!REFUSALS.has(status) || this.#fate !== 'unseen' || this.#blameless) return false;
    const next = FORMS[FORMS.indexOf(this.#form) + 1];
    this.#blameless = next === undefined;
    this.#form = next ?? this.#first;
    return next !== undefined;
  }
}
