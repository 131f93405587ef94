/** Work that goes on after its caller has its answer, such as a release that is not confirmed yet. None of it ever rejects. */
export class Tasks {
  readonly #running = new Set<Promise<void>>();

  add(task: Promise<unknown>): void {
    const done: Promise<void> = task
      .then(
        () => undefined,
        () => undefined,
      )
      .then(() => void this.#running.delete(done));
    this.#running.add(done);
  }

  async settled(): Promise<void> {
    await Promise.all(this.#running);
  }
}
