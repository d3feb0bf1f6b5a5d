import { describe, expect, test } from 'vitest';
import { isTurnedAway, opensRun, retryAfterOf } from '../../src/client/answer.ts';

const STREAM = { 'content-type': 'text/event-stream; charset=utf-8', 'holdfast-run-id': 'run_1' };

describe('the stream of a run', () => {
  test.each<[string, Response, boolean]>([
    ['is one', new Response('', { headers: STREAM }), true],
    ['has a status', new Response('', { status: 500, headers: STREAM }), false],
    ['has a run', new Response('', { headers: { 'content-type': 'text/event-stream' } }), false],
    ['has a type', new Response('', { headers: { ...STREAM, 'content-type': 'text/html' } }), false],
    ['has some type', new Response(new Uint8Array(), { headers: { 'holdfast-run-id': 'run_1' } }), false],
    ['has a body', new Response(null, { headers: STREAM }), false],
  ])('%s', (_, response, isOne) => {
    expect(opensRun(response)).toBe(isOne);
  });
});

describe('an answer that turns the request away', () => {
  test.each([
    [503, '{"error":{"code":"shutting_down"}}', true],
    [503, '{"error":{"code":"store_unavailable"}}', true],
    [503, '{"error":{"code":"run_taken_over"}}', true],
    [503, '{"error":{"code":"upstream_unavailable"}}', false],
    [502, '{"error":{"message":"The server had an error"}}', false],
    [502, '{"error":"bad gateway"}', true],
    [502, '<html>502 Bad Gateway</html>', true],
    [504, '', true],
    [504, 'null', true],
    [500, '<html>', false],
    [429, '', false],
    [404, '{"error":{"code":"shutting_down"}}', false],
  ])('%i %s: %s', async (status, body, isOne) => {
    const response = new Response(body, { status });
    expect(await isTurnedAway(response)).toBe(isOne);
    expect(await response.text()).toBe(body);
  });
});

describe('how long it asks to wait', () => {
  test.each<[Record<string, string>, number | undefined]>([
    [{}, undefined],
    [{ 'retry-after': '2' }, 2_000],
    [{ 'Retry-After-Ms': '150', 'retry-after': '2' }, 150],
    [{ 'retry-after': 'soon' }, undefined],
  ])('%j', (headers, expected_ms) => {
    expect(retryAfterOf(new Response('', { headers }))).toBe(expected_ms);
  });
});
