/**
 * A map in insertion order, for entries that are added and removed with every request or task. Keys must not be integers.
 *
 * A `Map` makes a new table whenever its table is full of deleted entries; the old table keeps its entries and points to the
 * new one. Once one of these tables is in V8's old generation, it keeps every later table and all their entries alive until
 * the next collection of the whole heap, so short-lived objects are copied twice instead of never. Tables of a plain object
 * have no such link.
 */
export class LiveMap<Value> {
  readonly #entries: Record<string, Value> = Object.create(null) as Record<string, Value>
  #size = 0

  get size(): number {
    return this.#size
  }

  has(key: string): boolean {
    return key in this.#entries
  }

  get(key: string): Value | undefined {
    return this.#entries[key]
  }

  set(key: string, value: Value): void {
    if (!(key in this.#entries)) this.#size += 1
    this.#entries[key] = value
  }

  /** Removes an entry; returns whether there was one. */
  delete(key: string): boolean {
    if (!(key in this.#entries)) return false
    this.#size -= 1
    return delete this.#entries[key]
  }

  /** A copy of the keys. */
  keys(): string[] {
    return Object.keys(this.#entries)
  }

  /** A copy of the values. */
  values(): Value[] {
    return Object.values(this.#entries)
  }
}
