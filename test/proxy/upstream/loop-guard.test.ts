import type { IncomingHttpHeaders } from 'node:http';
import { describe, expect, it } from 'vitest';
import { loopGuard, requestHeaders } from '../../../src/proxy/upstream/headers.ts';

const UPSTREAM = { base_url: 'http://x/v1' };

/** The `Via` header that goes upstream for a request with this one. */
function passed(secret: string, via?: string): string {
  const headers: IncomingHttpHeaders = via === undefined ? {} : { via };
  loopGuard(secret)(headers);
  return String(requestHeaders(headers, UPSTREAM).via);
}

describe('a request', () => {
  it('says upstream that it has been here, and not which other proxies it passed', () => {
    const via = passed('one secret', '1.1 proxy.internal, 1.0 fred');
    expect(via).toMatch(/^1\.1 holdfast-[\w-]{16}$/);
    expect(via).toBe(passed('one secret'));
    expect(passed('another secret')).not.toBe(via);
  });

  it('that has been at another deployment continues, and says both', () => {
    const first = passed('one secret');
    expect(passed('another secret', `1.1 proxy, ${first}`)).toBe(`${first}, ${passed('another secret')}`);
  });

  it('that has been here before is refused', () => {
    const round = passed('another secret', passed('one secret'));
    expect(() => passed('one secret', round)).toThrow(
      expect.objectContaining({ code: 'loop_detected', status: 508 }),
    );
  });
});
