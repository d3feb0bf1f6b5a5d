/** What can be counted of what a provider reports: it may say anything, and a metric refuses what is no increase. */
export const tokenCount = (reported: number | undefined): number =>
  reported !== undefined && Number.isFinite(reported) && reported > 0 ? reported : 0;
