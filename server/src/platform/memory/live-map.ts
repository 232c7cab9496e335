/**
 * A map for entries that come and go with every request or task, by keys that are no integers; in the order in which the keys came.
 *
 * A `Map` makes a new table whenever its table is full of deleted entries, and the old table keeps its entries and points to the
 * new one. Once one of these tables is in V8's old generation, every later table is reachable from it, and with them all
 * that was ever in the map, until the next collection of the whole heap: short-lived objects are copied twice instead of
 * never. Tables of a plain object have no such link.
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

  /** Whether there was an entry. */
  delete(key: string): boolean {
    if (!(key in this.#entries)) return false
    this.#size -= 1
    return delete this.#entries[key]
  }

  /** The keys as they are now. */
  keys(): string[] {
    return Object.keys(this.#entries)
  }

  /** The values as they are now. */
  values(): Value[] {
    return Object.values(this.#entries)
  }
}
