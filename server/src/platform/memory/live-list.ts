/** A node of a list. */
export interface Place<Value> {
  value: Value
  previous: Place<Value> | undefined
  next: Place<Value> | undefined
  isIn: boolean
}

/** A linked list, oldest first, for values that are added and removed with every request or task; see `LiveMap`. */
export class LiveList<Value> {
  #first: Place<Value> | undefined
  #last: Place<Value> | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Adds a value as the newest. */
  add(value: Value): Place<Value> {
    const place: Place<Value> = { value, previous: this.#last, next: undefined, isIn: true }
    if (this.#last) this.#last.next = place
    else this.#first = place
    this.#last = place
    this.#size += 1
    return place
  }

  /** Removes a value; returns whether it was in the list. */
  remove(place: Place<Value>): boolean {
    if (!place.isIn) return false
    const { previous, next } = place
    if (previous) previous.next = next
    else this.#first = next
    if (next) next.previous = previous
    else this.#last = previous
    // A removed place in the old generation would keep the places that it points to alive.
    place.previous = place.next = undefined
    place.isIn = false
    this.#size -= 1
    return true
  }

  /** The places, oldest first. The current one may be removed during the iteration. */
  *places(): Iterable<Place<Value>> {
    for (let place = this.#first, next = place?.next; place; place = next, next = place?.next) yield place
  }

  /** A copy of the values, oldest first. */
  values(): Value[] {
    return [...this.places()].map(({ value }) => value)
  }
}
