import { expect, test } from 'vitest';
import { readTraceContext, traceparentOf } from '../../src/tracing/run-trace.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

test.each([
  ['01', 1],
  ['00', 0],
  // Level 2 of the standard adds a second flag, which level 1 doesn't define.
  ['03', 1],
  ['02', 0],
])('flags %s', (flags, traceFlags) => {
  const context = readTraceContext(`00-${TRACE}-${SPAN}-${flags}`);
  expect(context).toEqual({ traceId: TRACE, spanId: SPAN, traceFlags, isRemote: true });
  expect(context && traceparentOf(context)).toBe(`00-${TRACE}-${SPAN}-0${traceFlags}`);
});

test('what a later version adds is nothing to us', () => {
  expect(readTraceContext(`cc-${TRACE}-${SPAN}-01-more`)).toMatchObject({ traceId: TRACE, spanId: SPAN });
});

test.each([
  undefined,
  '',
  'nonsense',
  `00-${TRACE}-${SPAN}`,
  `00-${TRACE}-${SPAN}-01-more`,
  `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
  `ff-${TRACE}-${SPAN}-01`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE}0-${SPAN}-01`,
])('%s is no trace context', (traceparent) => {
  expect(readTraceContext(traceparent, 'vendor=opaque')).toBeUndefined();
});

test('the state of a trace is kept for its spans', () => {
  const context = readTraceContext(`00-${TRACE}-${SPAN}-01`, 'one=1,two=2');
  expect(context?.traceState?.serialize()).toBe('one=1,two=2');
});
