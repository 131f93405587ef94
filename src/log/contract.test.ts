/**
 * The contract over the engines that need no server: memory, memory with latency and lost answers, embedded.
 * A random engine prints its seed; `LEASEHOLD_SEED=<seed> npm test -- src/log/contract.test.ts` repeats it.
 */
import { testContract } from './contract.fixture.ts';
import { enginesOf } from './engines.fixture.ts';
import { seedOfRun } from './log.fixture.ts';

for (const { name, make, hasStandbys } of enginesOf(seedOfRun(process.env.LEASEHOLD_SEED))) {
  testContract(name, make, { hasStandbys });
}
