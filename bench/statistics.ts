/** A figure that is measured once per round. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** `sorted` is ascending. Uses the nearest rank, so the result is always a measured value. NaN if empty. */
export function quantile(sorted: ArrayLike<number>, fraction: number): number {
  const rank = Math.min(sorted.length - 1, Math.max(0, Math.ceil(fraction * sorted.length) - 1));
  return sorted[rank] ?? Number.NaN;
}

export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = sorted.length / 2;
  const median = Number.isInteger(middle)
    ? ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2
    : (sorted[Math.floor(middle)] ?? Number.NaN);
  return { median, min: sorted[0] ?? Number.NaN, max: sorted.at(-1) ?? Number.NaN };
}

/** Slope of the least-squares line through the points, in y units per x unit. */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (pick: 0 | 1) => points.reduce((sum, point) => sum + point[pick], 0) / points.length;
  const [mean_x, mean_y] = [mean(0), mean(1)];
  let covariance = 0;
  let variance = 0;
  for (const [x, y] of points) {
    covariance += (x - mean_x) * (y - mean_y);
    variance += (x - mean_x) ** 2;
  }
  return variance === 0 ? 0 : covariance / variance;
}
