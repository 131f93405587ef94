/** What each test of the contract finds: a new log of the engine, open. */
import type { Stored } from '../engines.fixture.ts';
import type { LockLog } from '../port.ts';

export interface ContractScene {
  readonly stored: Stored;
  log: LockLog;
}
