import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { type Exchange, providerRequests, startProvider } from '../http-peer.ts';

export const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** What an endpoint receives, once the specification's verifier has accepted it. */
export interface ReceivedWebhook {
  readonly id: string;
  readonly payload: {
    readonly type: string;
    readonly timestamp: string;
    readonly data: Record<string, unknown>;
  };
  readonly request: Exchange['request'];
  answer(status: number, headers?: Record<string, string>): void;
  readonly response: Exchange['response'];
}

export interface Receiver {
  readonly url: string;
  /** The next request, once it has arrived. */
  next(): Promise<ReceivedWebhook>;
}

/** An endpoint that verifies what it receives. */
export async function startReceiver(secret = WEBHOOK_SECRET): Promise<Receiver> {
  const requests = providerRequests();
  const url = `${await startProvider(requests.listener)}/hooks?token=t-1`;
  return {
    url,
    async next() {
      const { request, response } = await requests.next();
      const { headers } = request;
      const payload = new Webhook(secret).verify(await text(request), headers as Record<string, string>);
      return {
        id: String(headers['webhook-id']),
        payload: payload as ReceivedWebhook['payload'],
        request,
        response,
        answer: (status, more = {}) => void response.writeHead(status, more).end('{}'),
      };
    },
  };
}
