import { expect, it } from 'vitest';
import type { UpstreamConfiguration } from '../../../src/config/configuration.ts';
import {
  requestHeaders,
  responseHeaders,
  revivedRequestHeaders,
  streamRequestHeaders,
} from '../../../src/proxy/upstream/headers.ts';

const CREDENTIAL_HEADERS = [
  'authorization',
  'api-key',
  'x-api-key',
  'x-goog-api-key',
  'cf-aig-authorization',
  'x-amz-security-token',
  'openai-organization',
  'openai-project',
];

const OPEN: UpstreamConfiguration = { base_url: 'http://x/v1', dialect: 'generic' };
const KEYED: UpstreamConfiguration = { ...OPEN, api_key: 'sk-configured' };

it('what a client says to the provider goes up', () => {
  const headers = {
    authorization: 'Bearer sk-client',
    'content-type': 'application/json',
    'openai-organization': 'org',
    'user-agent': 'sdk/1',
    'accept-encoding': 'gzip',
    'idempotency-key': 'one',
  };
  expect(requestHeaders(headers, OPEN)).toEqual(headers);
});

it.each([
  'connection',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'host',
  'content-length',
  'expect',
  'cookie',
  'forwarded',
  'via',
  'x-real-ip',
  'x-forwarded-for',
  'x-forwarded-host',
  'holdfast-events',
  'holdfast-run-id',
])('%s stays here', (name) => {
  expect(requestHeaders({ [name]: 'value', accept: '*/*' }, OPEN)).toEqual({ accept: '*/*' });
});

it('so does what the connection header names', () => {
  const headers = { connection: 'close, X-Debug', 'x-debug': '1', 'x-other': '2' };
  expect(requestHeaders(headers, OPEN)).toEqual({ 'x-other': '2' });
  expect(responseHeaders(headers, OPEN)).toEqual({ 'x-other': '2' });
});

it.each(CREDENTIAL_HEADERS)('a configured key replaces the %s of the client', (name) => {
  expect(requestHeaders({ [name]: 'sk-client' }, KEYED)).toEqual({ authorization: 'Bearer sk-configured' });
});

it.each(CREDENTIAL_HEADERS)(
  'it goes in the header that the wire has for it, whichever is the %s of the client',
  (name) => {
    const sent = requestHeaders({ [name]: 'sk-client' }, KEYED, { keyHeader: 'x-api-key' });
    expect(sent).toEqual({ 'x-api-key': 'sk-configured' });
  },
);

it('a request that only comes back has the headers that the wire insists on, unless it brings its own', () => {
  const wire = { headers: { 'anthropic-version': '2023-06-01' } };
  expect(revivedRequestHeaders({}, OPEN, wire)).toMatchObject(wire.headers);
  const brought = { 'anthropic-version': '2024-01-01' };
  expect(revivedRequestHeaders(brought, OPEN, wire)).toMatchObject(brought);
});

it('a stream that is read comes uncompressed', () => {
  expect(streamRequestHeaders({ 'accept-encoding': 'gzip, br' }, OPEN)).toEqual({
    'accept-encoding': 'identity',
  });
});

it('what a client says about its run is for us alone where we read the stream', () => {
  const headers = { 'idempotency-key': 'one', 'last-event-id': '7', 'user-agent': 'sdk/1' };
  expect(streamRequestHeaders(headers, OPEN)).toEqual({
    'user-agent': 'sdk/1',
    'accept-encoding': 'identity',
  });
});

it('a request that only comes back to a run brings its credential, and not the form of its own body', () => {
  const headers = {
    authorization: 'Bearer sk-client',
    accept: 'text/event-stream',
    'last-event-id': '7',
    'content-type': 'text/plain',
  };
  expect(revivedRequestHeaders(headers, OPEN)).toEqual({
    authorization: 'Bearer sk-client',
    'content-type': 'application/json',
    accept: '*/*',
    'accept-encoding': 'identity',
  });
});

it('what a provider answers comes back, but for what speaks of its connection or its own ports', () => {
  const headers = {
    'content-type': 'application/json',
    'content-length': '2',
    'x-request-id': 'req_1',
    'x-ratelimit-remaining-requests': '9',
    'retry-after': '1',
    'set-cookie': ['a=1', 'b=2'],
  };
  const connection = {
    connection: 'keep-alive',
    'transfer-encoding': 'chunked',
    'alt-svc': 'h3=":443"',
    'access-control-allow-origin': '*',
    absent: undefined,
  };
  expect(responseHeaders({ ...headers, ...connection }, OPEN)).toEqual(headers);
});

it('what a provider says to the account of a configured key is not for the client', () => {
  const headers = { 'set-cookie': ['a=1'], 'holdfast-run-id': 'run_x', 'x-request-id': 'req_1' };
  expect(responseHeaders(headers, OPEN)).toEqual(headers);
  expect(responseHeaders(headers, KEYED)).toEqual({ 'x-request-id': 'req_1' });
});
