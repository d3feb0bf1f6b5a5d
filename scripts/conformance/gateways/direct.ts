import type { GatewayUnderTest } from '../gateway.ts';

/** No gateway in between. */
export const DIRECT: GatewayUnderTest = {
  name: 'direct',
  version: '',
  configuration: 'the SDKs ask the provider itself',
  start: (provider_port) =>
    Promise.resolve({
      words: ['--base-url', `http://127.0.0.1:${provider_port}`],
      stop: () => Promise.resolve(),
    }),
};
