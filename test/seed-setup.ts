// Applies `HOLDFAST_SEED` to properties without their own seed, so that one variable repeats or varies a whole run.
const { HOLDFAST_SEED } = process.env;
if (HOLDFAST_SEED !== undefined) {
  const { default: fc } = await import('fast-check');
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(HOLDFAST_SEED) });
}
