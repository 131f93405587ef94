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

  close(link: FrontEndLink, client: number): void {
    const clients = this.#byLink.get(link);
    const gone = clients?.get(client);
    if (gone !== undefined) gone.isClosed = true;
    clients?.delete(client);
  }

  closeAll(link: FrontEndLink): void {
    for (const client of this.#byLink.get(link)?.values() ?? []) client.isClosed = true;
    this.#byLink.delete(link);
  }
}
