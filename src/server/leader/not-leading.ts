/** This replica does not lead: nothing was done, and the leader may be asked instead. */
export class NotLeadingError extends Error {
  constructor() {
    super('this replica does not lead');
    this.name = 'NotLeadingError';
  }
}
