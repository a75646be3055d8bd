/** Resource that several sessions of one agent share: made on first use, released with the last session. */

/** @template T */
export class Shared {
  #make;
  #release;
  #made = null;
  #sessions = 0;

  /**
   * @param {() => Promise<T>} make
   * @param {(made: T) => Promise<void>} release
   */
  constructor(make, release) {
    this.#make = make;
    this.#release = release;
  }

  /** Add a session. */
  join() {
    this.#sessions += 1;
    return this;
  }

  /** @returns {Promise<T>} */
  get() {
    // The promise is kept, not its value: sessions that ask at the same time must not make two.
    this.#made ??= this.#make();
    return this.#made;
  }

  /** Remove a session, and release the resource if it was the last one. */
  async leave() {
    this.#sessions -= 1;
    if (this.#sessions === 0 && this.#made !== null) await this.#release(await this.#made);
  }
}
