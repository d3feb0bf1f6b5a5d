import { expect, it } from 'vitest';
import { resumeBody } from '../../../src/proxy/resume/resume-body.ts';

const RUN_BYTES = 20;

it.each([
  [{ cursor: 0 }, { cursor: 0, tail: [] }],
  [
    { cursor: 7, tail: ['{"a":1}', '[DONE]'] },
    { cursor: 7, tail: ['{"a":1}', '[DONE]'] },
  ],
  [
    { cursor: 1, tail: ['x'.repeat(RUN_BYTES)] },
    { cursor: 1, tail: ['x'.repeat(RUN_BYTES)] },
  ],
])('%j', (fields, body) => {
  expect(resumeBody(fields, RUN_BYTES)).toEqual(body);
});

it.each([
  [{}, 'missing_field', 'cursor'],
  [{ cursor: '7' }, 'invalid_field', 'cursor'],
  [{ cursor: -1 }, 'invalid_field', 'cursor'],
  [{ cursor: 1.5 }, 'invalid_field', 'cursor'],
  [{ cursor: null }, 'invalid_field', 'cursor'],
  [{ cursor: 2 ** 53 }, 'invalid_field', 'cursor'],
  [{ cursor: 1, tail: 'x' }, 'invalid_field', 'tail'],
  [{ cursor: 1, tail: ['x', 'y'] }, 'invalid_field', 'tail'],
  [{ cursor: 2, tail: ['x', {}] }, 'invalid_field', 'tail[1]'],
  [{ cursor: 1, tail: ['x\ndata: y'] }, 'invalid_field', 'tail[0]'],
  [{ cursor: 1, tail: ['x\r'] }, 'invalid_field', 'tail[0]'],
  // Bytes, not characters.
  [{ cursor: 2, tail: ['x'.repeat(RUN_BYTES - 1), 'é'] }, 'invalid_field', 'tail'],
])('%j is refused', (fields, code, param) => {
  try {
    resumeBody(fields, RUN_BYTES);
  } catch (error) {
    const { body } = error as { body: string };
    expect(JSON.parse(body).error).toMatchObject({ code, param });
    return;
  }
  throw new Error('the body was taken');
});
