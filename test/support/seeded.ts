/**
 * fast-check as the tests of the core use it: a failed property prints its seed, and LEASEHOLD_SEED=<seed> with the same
 * command repeats it.
 */
import fc from 'fast-check';

const given = process.env.LEASEHOLD_SEED;
if (given !== undefined) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(given) });

export { fc };
