import { describe, expect, it } from 'vitest';
import { lastEventOf, startingAfter } from '../../../src/proxy/resume/reader.ts';
import { newRunId } from '../../checkpoint/fixtures.ts';

const RUN = newRunId();

describe('Last-Event-ID', () => {
  it.each([
    ['0', { seq: 0 }],
    ['17', { seq: 17 }],
    [`${RUN}.3.17`, { seq: 17, epoch: '3' }],
    [`${RUN}.3-5f3c0a9e.17`, { seq: 17, epoch: '3-5f3c0a9e' }],
    ['', undefined],
    [undefined, undefined],
  ])('%j', (id, cursor) => {
    expect(lastEventOf(id === undefined ? {} : { 'last-event-id': id }, RUN)).toEqual(cursor);
  });

  it.each([
    '-1',
    '1.5',
    '0x10',
    ' 1',
    'seven',
    '9'.repeat(16),
    `${RUN}.17`,
    `${RUN}.1.`,
    `${RUN}.1.2.3`,
    `${RUN}.2-.17`,
    `${RUN}.2-x.17`,
    `${newRunId()}.1.17`,
  ])('%j is refused', (id) => {
    expect(() => lastEventOf({ 'last-event-id': id }, RUN)).toThrow(
      `Invalid value for 'Last-Event-ID': it must be the number of events that you have, or the id of the last one: ${RUN}.<epoch>.<number>.`,
    );
  });
});

describe('starting_after', () => {
  it.each([
    ['0', { seq: 0 }],
    ['17', { seq: 17 }],
    [undefined, undefined],
  ])('%j', (value, cursor) => {
    expect(startingAfter(value)).toEqual(cursor);
  });

  it.each(['', '-1', '1e3', 'seven', ['1', '2'], '9'.repeat(16)])('%j is refused', (value) => {
    expect(() => startingAfter(value)).toThrow("Invalid value for 'starting_after'");
  });
});
