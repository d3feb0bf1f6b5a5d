import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { StepReader } from '../../src/chaos/answer-step.ts';
import { EventSplitter } from '../../src/chaos/event-splitter.ts';
import type { Place } from '../../src/chaos/fault.ts';
import { PlaceFinder } from '../../src/chaos/place-finder.ts';
import { ASSUMED_CHARACTERS, TypicalLength } from '../../src/chaos/typical-length.ts';
import type { WireName } from '../../src/checkpoint/journal.ts';
import { WIRES } from '../../src/proxy/wires/registry.ts';
import { CASES, seedOr } from '../cases.ts';
import { ARGUMENTS, scriptedEvents, TEXT } from './scripted-answer.ts';

const SEED = seedOr(11);
const EVENT_BYTES_MAX = 65_536;
const NAMES: readonly WireName[] = ['chat_completions', 'completions', 'messages', 'responses'];
const WITH_CALLS = NAMES.filter((name) => name !== 'completions');

/** The events that the client receives before the fault strikes, or all of them if it never does. */
function eventsBefore(wire: WireName, place: Place, typical_characters = 100): readonly string[] {
  const reader = new StepReader(WIRES[wire], EVENT_BYTES_MAX);
  const finder = new PlaceFinder(place, typical_characters);
  const events = scriptedEvents(wire);
  const at = events.findIndex((event) => finder.isBefore(reader.read(Buffer.from(event))));
  return at === -1 ? events : events.slice(0, at);
}

const charactersIn = (wire: WireName, events: readonly string[]): number => {
  const reader = new StepReader(WIRES[wire], EVENT_BYTES_MAX);
  return events.reduce((sum, event) => sum + reader.read(Buffer.from(event)).characters, 0);
};

const finishes = (wire: WireName, events: readonly string[]): boolean => {
  const reader = new StepReader(WIRES[wire], EVENT_BYTES_MAX);
  return events.some((event) => reader.read(Buffer.from(event)).isFinish);
};

describe.each(NAMES)('%s', (wire) => {
  const said = wire === 'completions' ? TEXT.length : TEXT.length + ARGUMENTS.length;

  test('the whole answer has all of its characters, and its finish', () => {
    expect(charactersIn(wire, scriptedEvents(wire))).toBe(said);
    expect(finishes(wire, scriptedEvents(wire))).toBe(true);
  });

  test('start is before the first content', () => {
    const before = eventsBefore(wire, { kind: 'start' });
    expect(charactersIn(wire, before)).toBe(0);
    expect(before.length).toBeLessThan(scriptedEvents(wire).length);
  });

  test('a number of characters is never exceeded, and missed by less than a piece', () => {
    const before = eventsBefore(wire, { kind: 'characters', characters: 25 });
    expect(charactersIn(wire, before)).toBe(20);
  });

  test('a percentage is one of the typical length', () => {
    const before = eventsBefore(wire, { kind: 'percent', percent: 40 }, 50);
    expect(charactersIn(wire, before)).toBe(20);
  });

  test.each([
    ['end', { kind: 'end' }],
    ['more than there is', { kind: 'characters', characters: 1_000_000 }],
    ['all of a longer answer', { kind: 'percent', percent: 100 }],
  ] as const)('%s is after all content and before the finish', (_, place) => {
    const before = eventsBefore(wire, place, 1_000_000);
    expect(charactersIn(wire, before)).toBe(said);
    expect(finishes(wire, before)).toBe(false);
  });
});

test.each(WITH_CALLS)('%s: tool is after the first piece of the arguments', (wire) => {
  const before = eventsBefore(wire, { kind: 'tool' });
  const said = charactersIn(wire, before) - TEXT.length;
  expect(said).toBeGreaterThan(0);
  expect(said).toBeLessThan(ARGUMENTS.length);
});

test('tool does not come in an answer without a call', () => {
  expect(eventsBefore('completions', { kind: 'tool' })).toEqual(scriptedEvents('completions'));
});

test('a body is divided into its events without changing a byte, in whatever pieces it comes', () => {
  const events = fc.array(
    fc.tuple(fc.stringMatching(/^data: [ -~é☃]{0,20}$/), fc.constantFrom('\n\n', '\r\n\r\n', '\r\r')),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(events, fc.string({ maxLength: 9 }), fc.array(fc.nat(60)), (written, rest, cuts) => {
      const whole = written.map((parts) => parts.join(''));
      const tail = rest.replaceAll(/[\r\n]/g, '');
      const body = Buffer.from(whole.join('') + tail);
      const splitter = new EventSplitter();
      const found: Buffer[] = [];
      let at = 0;
      for (const size of [...cuts, body.length]) {
        found.push(...splitter.split(body.subarray(at, at + size)));
        at += size;
      }
      expect(found.map(String)).toEqual(whole);
      expect(String(splitter.takeRest())).toBe(tail);
    }),
    { seed: SEED, numRuns: CASES },
  );
});

test('the typical length is the median of the last answers, and assumed before the first', () => {
  const typical = new TypicalLength();
  expect(typical.characters).toBe(ASSUMED_CHARACTERS);
  for (const length of [10, 1000, 30]) typical.add(length);
  expect(typical.characters).toBe(30);
  for (let answer = 0; answer < 15; answer++) typical.add(7);
  expect(typical.characters).toBe(7);
});
