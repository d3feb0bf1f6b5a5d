import { describe, expect, it } from 'vitest';
import { Chart, EXAMPLES } from './chart.ts';

const chart = Chart.use();

describe('the chart', () => {
  it.each([undefined, ...EXAMPLES])('passes helm lint --strict with %s', async (example) => {
    const { stdout, stderr, status } = await chart.lint(example);
    expect({ status, output: stdout + stderr }).toEqual({ status: 0, output: expect.any(String) });
    expect(stdout).toContain('1 chart(s) linted, 0 chart(s) failed');
    expect(stdout).not.toMatch(/\[(WARNING|ERROR)\]/);
  });
});
