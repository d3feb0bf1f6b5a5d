import type { Relay } from '../api-context.ts';
import type { NoticeBoard } from './notice-board.ts';
import { NoticeForm } from './notice-form.ts';
import { NoticedTransport } from './noticed-transport.ts';

/** Relays a new run whose model may have to be told something. */
export const noticedRelay =
  (relay: Relay, board: NoticeBoard): Relay =>
  async (run, client, context) => {
    const { owner, thread, request, target } = run;
    const pending = await board.take({ owner, thread, messages: request.messages });
    if (!pending) return relay(run, client, context);
    const form = new NoticeForm(pending.notices, target.upstream.dialect);
    const transport = new NoticedTransport(context.transport, form);
    try {
      return await relay(run, client, { ...context, transport });
    } finally {
      await pending.settle(form.fate);
    }
  };
