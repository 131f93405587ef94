/** The state machine, as the rest of the program sees it. Start with README.md. */
export { levelOf } from './acquire.ts';
export { type Applied, apply, type Draft, type FaultProbe, hasBacklog, nextDue } from './apply.ts';
export { AssertionError, assert, CoreFault, type FaultStep } from './assert.ts';
export { FormatError } from './codec/bytes.ts';
export { canonicalJson } from './codec/commands.ts';
export { decodeEntry, encodeEntry, sha256 } from './codec/entry.ts';
export { isConsumer } from './policy.ts';
export { SnapshotReader, writeSnapshot } from './snapshot.ts';
export { createState, type State } from './state.ts';
export { liveSessions, read, sessionStatus } from './views.ts';
