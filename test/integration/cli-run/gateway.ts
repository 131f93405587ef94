/**
 * A way from one `leasehold run` to its server that a test can hold up: any answer, until the test lets it go, or everything. So a run
 * stands in the state that the test wants while it is stopped or killed.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** An answer held back. */
export interface Held {
  /** Resolves when the server has answered. */
  readonly answered: Promise<void>;
  letGo(): void;
}

interface Hold {
  readonly matches: (method: string, path: string) => boolean;
  readonly onAnswered: () => void;
  readonly released: Promise<void>;
}

export class Gateway {
  readonly #server = createServer((incoming, answer) => this.#pass(incoming, answer));
  readonly #port: number;
  readonly #holds: Hold[] = [];
  #isCut = false;

  private constructor(port: number) {
    this.#port = port;
  }

  /** To the server on `port`. */
  static async start(port: number): Promise<Gateway> {
    const gateway = new Gateway(port);
    await new Promise<void>((resolve) => gateway.#server.listen(0, '127.0.0.1', resolve));
    return gateway;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Holds the next answer to `method` on a path that ends in `end`. */
  hold(method: string, end: string): Held {
    const answered = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    this.#holds.push({
      matches: (m, path) => m === method && path.endsWith(end),
      onAnswered: answered.resolve,
      released: released.promise,
    });
    return { answered: answered.promise, letGo: released.resolve };
  }

  /** From now on nothing gets through, in either direction, and nobody is told. */
  cut(): void {
    this.#isCut = true;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #pass(incoming: IncomingMessage, answer: ServerResponse): void {
    const { method = '', url: path = '', headers } = incoming;
    const at = this.#holds.findIndex(({ matches }) => matches(method, path));
    const [hold] = at < 0 ? [] : this.#holds.splice(at, 1);
    if (this.#isCut) return;
    const onward = request(
      { port: this.#port, host: '127.0.0.1', method, path, headers: { ...headers, host: 'localhost' } },
      (response) => {
        const onAnswer = async (): Promise<void> => {
          hold?.onAnswered();
          await hold?.released;
          if (this.#isCut) return;
          answer.writeHead(response.statusCode ?? 500, response.headers);
          response.on('data', (chunk) => {
            if (!this.#isCut) answer.write(chunk);
          });
          response.on('end', () => {
            if (!this.#isCut) answer.end();
          });
          response.on('error', () => answer.destroy());
        };
        void onAnswer();
      },
    );
    onward.on('error', () => answer.destroy());
    answer.on('close', () => onward.destroy());
    incoming.pipe(onward);
  }
}
