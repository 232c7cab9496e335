/** A value's place in a list; it leaves the list once. */
export interface Place<Value> {
  value: Value
  previous: Place<Value> | undefined
  next: Place<Value> | undefined
  isIn: boolean
}

/** A list of values that come and go with every request or task, oldest first; why it is no `Set` is said at `LiveMap`. */
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

  /** Removes a value; whether it was in the list. */
  remove(place: Place<Value>): boolean {
    if (!place.isIn) return false
    const { previous, next } = place
    if (previous) previous.next = next
    else this.#first = next
    if (next) next.previous = previous
    else this.#last = previous
    // A removed place that pointed to others would keep them, once it is in the old generation.
    place.previous = place.next = undefined
    place.isIn = false
    this.#size -= 1
    return true
  }

  /** The places; one that is removed while they are gone through does not end that. */
  *places(): Iterable<Place<Value>> {
    for (let place = this.#first, next = place?.next; place; place = next, next = place?.next) yield place
  }

  /** The values as they are now. */
  values(): Value[] {
    return [...this.places()].map(({ value }) => value)
  }
}
