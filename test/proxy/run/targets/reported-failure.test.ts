import { describe, expect, it } from 'vitest';
import type { Cause } from '../../../../src/interrupts/interruption.ts';
import type { Reaction } from '../../../../src/plans/target-choice.ts';
import { moreInformative, type ReportedFailure } from '../../../../src/proxy/run/targets/run-targets.ts';

const ONE = { name: 'one', upstream: { base_url: 'http://one/v1' } };
const OTHER = { name: 'other', upstream: { base_url: 'http://other/v1' } };

const failure = (cause: Cause, reaction: Reaction, target = ONE): ReportedFailure => ({
  interruption: { cause, phase: 'connect', evidence: { kind: 'status', status: 500 } },
  reaction,
  target,
  report: {} as ReportedFailure['report'],
});
const overloaded = failure('provider_5xx', 'again');

describe('what the client is told', () => {
  it('is the first failure, and then the last that may pass', () => {
    expect(moreInformative(undefined, overloaded)).toBe(overloaded);
    const limited = failure('rate_limited', 'next', OTHER);
    expect(moreInformative(overloaded, limited)).toBe(limited);
  });

  it('is not that asking for the rest has failed, nor what another target has against the request', () => {
    expect(moreInformative(overloaded, failure('invalid_request', 'ours', OTHER))).toBe(overloaded);
    expect(moreInformative(overloaded, failure('invalid_request', 'refused', OTHER))).toBe(overloaded);
  });

  it('comes with the last answer of the target that it is about', () => {
    const refused = failure('invalid_request', 'refused');
    expect(moreInformative(overloaded, refused)).toEqual({ ...overloaded, report: refused.report });
    expect(moreInformative(overloaded, refused).report).toBe(refused.report);
  });

  it('comes with what was said of the request that the client has made, not of a shorter one', () => {
    const overflow = failure('context_overflow', 'outgrown');
    const again = { ...failure('context_overflow', 'outgrown'), isCompressed: true };
    expect(moreInformative(overflow, again)).toBe(overflow);
  });

  it("is not the operator's fault if it can be another", () => {
    const refused = failure('invalid_request', 'refused', OTHER);
    expect(moreInformative(failure('unauthorised', 'misconfigured'), refused)).toBe(refused);
  });

  it('is a filter, at whichever target', () => {
    const filtered = failure('content_filter', 'final', OTHER);
    expect(moreInformative(overloaded, filtered)).toBe(filtered);
  });
});
