/** What several sessions of one agent share: made when it is first needed, let go of with the last session. */

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

  /** Counts a session. */
  join() {
    this.#sessions += 1;
    return this;
  }

  /** @returns {Promise<T>} */
  get() {
    this.#made ??= this.#make();
    return this.#made;
  }

  /** Lets a session go. */
  async leave() {
    this.#sessions -= 1;
    if (this.#sessions === 0 && this.#made !== null) await this.#release(await this.#made);
  }
}
