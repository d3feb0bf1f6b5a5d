import { describe, expect, test } from 'vitest';
import { NoticedTransport, NoticeForm } from '../../../../src/proxy/run/notices/noticed-relay.ts';
import type { Transport, TransportRequest } from '../../../../src/proxy/upstream/transport.ts';
import { responsesNotices } from '../../../../src/proxy/wires/responses/conversation.ts';

const SIGNAL = new AbortController().signal;

/** What is sent to a provider that answers with these statuses, and then with 200. */
function sending(statuses: readonly number[]) {
  const sent: Pick<TransportRequest, 'method' | 'body'>[] = [];
  const left = [...statuses];
  const provider: Transport = {
    async open({ method, body }) {
      sent.push({ method, ...(body !== undefined && { body }) });
      return { status: left.shift() ?? 200, headers: {}, body: { consume: async () => {} } };
    },
    close: async () => {},
  };
  const form = new NoticeForm([{ place: 'instructions', text: 'told' }], responsesNotices, undefined);
  const transport = new NoticedTransport(provider, form);
  const send = async (method: string, body?: object) => {
    const request = { method, url: 'http://provider.test/v1/responses', headers: {}, signal: SIGNAL };
    const { status } = await transport.open({
      ...request,
      connect_ms: 1000,
      ...(body && { body: JSON.stringify(body) }),
    });
    return status;
  };
  return { sent, form, send };
}

describe('a request without a body', () => {
  test('that comes back to an answer is made as it is', async () => {
    const { sent, form, send } = sending([]);
    await send('POST', { input: 'Tell me.' });
    expect(await send('GET')).toBe(200);
    expect(sent.map(({ method }) => method)).toEqual(['POST', 'GET']);
    expect(sent[0]?.body).toContain('told');
    expect(sent[1]).toEqual({ method: 'GET' });
    expect(form.fate).toBe('told');
  });

  test('says nothing of notices when it is refused', async () => {
    const { sent, form, send } = sending([503, 400]);
    expect(await send('POST', { input: 'Tell me.' })).toBe(503);
    expect(await send('GET')).toBe(400);
    expect(sent).toHaveLength(2);
    expect(form.fate).toBe('unseen');
    expect(await send('POST', { input: 'Tell me.' })).toBe(200);
    expect(sent[2]).toEqual(sent[0]);
  });
});
