// Properties that name no seed of their own take `HOLDFAST_SEED` too, so that one variable repeats or varies a whole run.
const { HOLDFAST_SEED } = process.env;
if (HOLDFAST_SEED !== undefined) {
  const { default: fc } = await import('fast-check');
  fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(HOLDFAST_SEED) });
}
