import { answer } from './answer.ts';
import type { Provider } from './provider.ts';
import { completionRequest } from './request.ts';
import type { Plan } from './script.ts';

/** The body that the provider's last request would have received without a fault, byte for byte. */
export function uncutBytes(provider: Provider, plan: Plan): Buffer {
  const last = provider.requests.at(-1);
  const request = completionRequest(last?.body);
  if (!last || !request) throw new Error('the provider has not had a chat completion request');
  const occasion = { attempt: 1, serial: provider.requests.length, created: Math.floor(last.at_ms / 1000) };
  const steps = answer({ ...plan, faults: [] }, request, occasion);
  return Buffer.concat(steps.flatMap((step) => (step.kind === 'send' ? [step.bytes] : [])));
}
