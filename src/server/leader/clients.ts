/**
 * The client streams of all front ends, as the leader knows them: made when something first comes from one, gone when it, or
 * its front end, is.
 */
import { type FrontEndLink, Outgoing } from './outbox.ts';

export class Clients {
  readonly #byLink = new Map<FrontEndLink, Map<number, Outgoing>>();

  of(link: FrontEndLink, client: number): Outgoing {
    let clients = this.#byLink.get(link);
    if (clients === undefined) {
      clients = new Map();
      this.#byLink.set(link, clients);
    }
    let outgoing = clients.get(client);
    if (outgoing === undefined) {
      outgoing = new Outgoing(link, client);
      clients.set(client, outgoing);
    }
    return outgoing;
  }

  /** Those of them that there were, closed now. */
  close(link: FrontEndLink, numbers: readonly number[]): readonly Outgoing[] {
    const clients = this.#byLink.get(link);
    const gone = numbers.flatMap((client) => clients?.get(client) ?? []);
    for (const client of gone) {
      client.isClosed = true;
      clients?.delete(client.client);
    }
    return gone;
  }

  /** All of a front end, closed now. */
  closeAll(link: FrontEndLink): readonly Outgoing[] {
    const gone = [...(this.#byLink.get(link)?.values() ?? [])];
    for (const client of gone) client.isClosed = true;
    this.#byLink.delete(link);
    return gone;
  }
}
