/** The answer of the demos' providers. */
export const ANSWER = `A holdfast is the organ with which kelp grips the rock. It looks like a root, but it takes up no \
nutrients: its only task is to hold on. Branching fingers, called haptera, grow into every crevice of the stone \
and set there like glue. When a storm tears at the blades, the stipe bends, the fronds stream with the surge, and \
the holdfast does not let go. A kelp forest thirty metres tall hangs on grips no wider than a hand, and hundreds \
of small animals live between those fingers, sheltered from the very waves that would sweep them away.`;
