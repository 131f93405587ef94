/**
 * What is put off to later steps and entries: who waits there for what. Each joins once for the same work, and asking
 * whether it has costs nothing. What the work is: backlog-steps.ts.
 */
import { assert } from './assert.ts';
import type { BacklogItem, Session, SessionItem, State } from './state.ts';

export function joinToEnd(state: State, session: Session): void {
  assert(session.ending !== null, 'a live session is to be ended');
  if (session.endItem !== null) return;
  session.endItem = { kind: 'end', session, targets: [], next: 0 };
  state.backlog.push(session.endItem);
}

export function joinToStrip(state: State, session: Session): void {
  if (session.stripItem !== null) return;
  session.stripItem = { kind: 'strip', session, targets: [], next: 0 };
  state.backlog.push(session.stripItem);
}

export function joinToServe(state: State, name: string): void {
  if (state.toServe.has(name)) return;
  state.toServe.add(name);
  state.backlog.push({ kind: 'serve', name });
}

/** To be called when the work of an item is done, before it leaves the list: from now on it may join again. */
export function leave(state: State, item: BacklogItem): void {
  switch (item.kind) {
    case 'end':
      assert(item.session.endItem === item, 'a session is ended twice');
      item.session.endItem = null;
      return;
    case 'strip':
      assert(item.session.stripItem === item, 'a session is stripped twice');
      item.session.stripItem = null;
      return;
    case 'serve':
      assert(state.toServe.delete(item.name), 'a name is served twice');
      return;
  }
}

/** What was passed over may have to be done after all: looks at everything again. */
export function lookAgain(item: SessionItem | null): void {
  if (item === null) return;
  item.targets = [];
  item.next = 0;
}
