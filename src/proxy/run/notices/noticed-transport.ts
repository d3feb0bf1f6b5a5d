import type { Transport, TransportRequest, TransportResponse } from '../../upstream/transport.ts';
import type { NoticeForm } from './notice-form.ts';

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
