/** What every engine of the log has to do: a suite that is run against each. */
import { afterEach, beforeEach, describe } from 'vitest';
import { entriesContract } from './contract/entries.fixture.ts';
import { leadershipContract } from './contract/leadership.fixture.ts';
import { livesContract } from './contract/lives.fixture.ts';
import type { ContractScene } from './contract/scene.fixture.ts';
import { snapshotsContract } from './contract/snapshots.fixture.ts';
import { trimmingContract } from './contract/trimming.fixture.ts';
import type { Stored } from './engines.fixture.ts';

/** `hasStandbys`: more than one process can have the log open. */
export function testContract(
  engine: string,
  make: () => Stored,
  { hasStandbys = true }: { readonly hasStandbys?: boolean } = {},
): void {
  describe(`log contract: ${engine}`, () => {
    const scene = {} as { -readonly [Part in keyof ContractScene]: ContractScene[Part] };

    beforeEach(async () => {
      scene.stored = make();
      scene.log = await scene.stored.open();
    });

    afterEach(async () => {
      await scene.log.close();
      await scene.stored.remove();
    });

    entriesContract(scene);
    leadershipContract(scene);
    snapshotsContract(scene, hasStandbys);
    trimmingContract(scene);
    livesContract(scene);
  });
}
